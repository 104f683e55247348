// The version of this source tree; the same as project(VERSION) in CMakeLists.txt.
#ifndef BERTH_SUPPORT_VERSION_H_
#define BERTH_SUPPORT_VERSION_H_

namespace berth {
inline constexpr char kBerthVersion[] = "0.1.0";
}  // namespace berth

#endif  // BERTH_SUPPORT_VERSION_H_
