// Files of a layout: bounded regular files only, no links.
#ifndef BERTH_CLIENTS_AGENT_IMAGES_BLOB_H_
#define BERTH_CLIENTS_AGENT_IMAGES_BLOB_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

inline constexpr char kDigestPrefix[] = "sha256:";

// `what` names the file in messages. NOT_FOUND if it is missing; FAILED_PRECONDITION if it is not a
// readable regular file or is larger than `max_bytes`.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, absl::string_view what,
                                          int64_t max_bytes);
absl::StatusOr<int64_t> FileBytes(const std::string& path, absl::string_view what);
absl::StatusOr<std::string> FileSha256Hex(const std::string& path, absl::string_view what);

std::string Sha256Hex(absl::string_view data);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IMAGES_BLOB_H_
