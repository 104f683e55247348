#include "storage/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"

namespace berth {

absl::Status FileStatus(const std::error_code& error, const std::filesystem::path& path) {
  if (!error) return absl::OkStatus();
  const std::string text = absl::StrCat(path.string(), ": ", error.message());
  return error == std::errc::no_space_on_device ? absl::ResourceExhaustedError(text)
                                                : absl::InternalError(text);
}

absl::Status SyncPath(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && fsync(descriptor) == 0;
  const std::error_code error(errno, std::generic_category());
  if (descriptor >= 0) close(descriptor);
  return synced ? absl::OkStatus() : FileStatus(error, path);
}

}  // namespace berth
