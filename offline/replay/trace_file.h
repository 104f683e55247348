// Reads text files, compressed or not.
#ifndef BERTH_OFFLINE_REPLAY_TRACE_FILE_H_
#define BERTH_OFFLINE_REPLAY_TRACE_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace berth::replay {

inline constexpr int64_t kMaxTraceBytes = int64_t{4} << 30;  // uncompressed

// The text of the file, gzip or plain. Errors name the file: NOT_FOUND, INVALID_ARGUMENT (damaged),
// RESOURCE_EXHAUSTED (larger than `max_bytes`).
absl::StatusOr<std::string> ReadTraceFile(const std::string& path,
                                          int64_t max_bytes = kMaxTraceBytes);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_TRACE_FILE_H_
