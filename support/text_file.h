// Reads whole files.
#ifndef BERTH_SUPPORT_TEXT_FILE_H_
#define BERTH_SUPPORT_TEXT_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace berth {

inline constexpr size_t kMaxTextFileBytes = size_t{16} << 20;

// The bytes of a file, or of standard input for "-". NOT_FOUND, PERMISSION_DENIED; INVALID_ARGUMENT
// above `max_bytes`.
absl::StatusOr<std::string> ReadTextFile(const std::string& path,
                                         size_t max_bytes = kMaxTextFileBytes);

// A file that a configuration names: whatever is wrong with it is INVALID_ARGUMENT, "cannot read
// PATH: ...".
absl::StatusOr<std::string> ReadConfiguredFile(const std::string& path);

}  // namespace berth

#endif  // BERTH_SUPPORT_TEXT_FILE_H_
