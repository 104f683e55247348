#include "support/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"

namespace berth {
namespace {

absl::Status FileError(const std::string& path, int error) {
  const std::string text = absl::StrCat(path, ": ", std::strerror(error));
  if (error == ENOENT) return absl::NotFoundError(text);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(text);
  return absl::UnknownError(text);
}

}  // namespace

absl::StatusOr<std::string> ReadTextFile(const std::string& path, size_t max_bytes) {
  const int fd = path == "-" ? dup(0) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError(path, errno);
  std::string text;
  std::vector<char> buffer(size_t{64} << 10);
  ssize_t got = 0;
  while (text.size() <= max_bytes && (got = read(fd, buffer.data(), buffer.size())) != 0) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  const int error = got < 0 ? errno : 0;
  close(fd);
  if (error != 0) return FileError(path, error);
  if (text.size() <= max_bytes) return text;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": larger than the ", max_bytes, " bytes allowed"));
}

absl::StatusOr<std::string> ReadConfiguredFile(const std::string& path) {
  absl::StatusOr<std::string> text = ReadTextFile(path);
  if (text.ok()) return text;
  return absl::InvalidArgumentError(absl::StrCat("cannot read ", text.status().message()));
}

}  // namespace berth
