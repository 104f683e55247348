// The version of this source tree: project(VERSION) in CMakeLists.txt.
#ifndef BERTH_SUPPORT_VERSION_H_
#define BERTH_SUPPORT_VERSION_H_

namespace berth {

// In one place in each program: a test makes another version of a program there.
extern const char kBerthVersion[];

}  // namespace berth

#endif  // BERTH_SUPPORT_VERSION_H_
