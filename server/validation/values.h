// Rules for numbers, durations, times and enums.
#ifndef BERTH_SERVER_VALIDATION_VALUES_H_
#define BERTH_SERVER_VALIDATION_VALUES_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/generated_enum_reflection.h>
#include <google/protobuf/timestamp.pb.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/validation/findings.h"

namespace berth {

// Longer than any job; short enough that sums of times stay in range.
inline constexpr absl::Duration kMaxDuration = absl::Hours(24 * 3653);

void CheckRange(const FieldPath& path, int64_t value, int64_t low, int64_t high,
                Findings& findings);

// low <= duration <= high, and well formed.
void CheckDuration(const FieldPath& path, const google::protobuf::Duration& duration,
                   absl::Duration low, absl::Duration high, Findings& findings);
// Year 1 to 9999, as in google.protobuf.Timestamp.
void CheckTimestamp(const FieldPath& path, const google::protobuf::Timestamp& time,
                    Findings& findings);

// True if a field mask's path ("spec.priority") names a field of the message.
bool KnownField(const google::protobuf::Descriptor* message, absl::string_view path);

// One of the enum's values. Proto3 lets unknown numbers through.
template <class Enum>
void CheckEnum(const FieldPath& path, Enum value, Findings& findings) {
  if (static_cast<int>(value) == 0) return;  // always one of them
  const auto* descriptor = google::protobuf::GetEnumDescriptor<Enum>();
  if (descriptor->FindValueByNumber(static_cast<int>(value)) != nullptr) return;
  findings.Invalid(path, absl::StrCat(static_cast<int>(value), " is not a value of ",
                                      std::string(descriptor->full_name())));
}

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_VALUES_H_
