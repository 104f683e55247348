#include "clients/agent/disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

class RealFile final : public Disk::File {
 public:
  RealFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~RealFile() override { close(fd_); }

  absl::Status Append(absl::string_view data) override {
    while (!data.empty()) {
      const ssize_t n = write(fd_, data.data(), data.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus(errno, absl::StrCat("write ", path_));
      data.remove_prefix(static_cast<size_t>(n));
    }
    return absl::OkStatus();
  }
  absl::Status Truncate(uint64_t size) override {
    if (ftruncate(fd_, static_cast<off_t>(size)) == 0) return absl::OkStatus();
    return ErrnoStatus(errno, absl::StrCat("truncate ", path_));
  }
  absl::Status Sync() override {
    if (fsync(fd_) == 0) return absl::OkStatus();
    // INTERNAL, whatever the error number: a failed fsync is never retried.
    return absl::InternalError(absl::StrCat("fsync ", path_, ": ", std::strerror(errno)));
  }

 private:
  const int fd_;
  const std::string path_;
};

class RealDisk final : public Disk {
 public:
  absl::StatusOr<std::string> ReadFile(const std::string& path) override {
    std::string text;
    const int error = ReadWholeFile(path, &text);
    if (error != 0) return ErrnoStatus(error, absl::StrCat("read ", path));
    return text;
  }
  absl::StatusOr<std::unique_ptr<File>> OpenAppend(const std::string& path,
                                                   bool truncate) override {
    const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | (truncate ? O_TRUNC : 0);
    const int fd = open(path.c_str(), flags, 0600);
    if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
    return std::make_unique<RealFile>(fd, path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    return ErrnoStatus(errno, absl::StrCat("rename ", from));
  }
  absl::Status SyncDirectory(const std::string& path) override {
    const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
    const int error = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    if (error == 0) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("fsync ", path, ": ", std::strerror(error)));
  }
};

}  // namespace

Disk& SystemDisk() {
  static RealDisk disk;
  return disk;
}

absl::Status ErrnoStatus(int error, absl::string_view what) {
  const std::string message = absl::StrCat(what, ": ", std::strerror(error));
  // EFBIG: the file size limit, which also means that there is no more room.
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    return absl::ResourceExhaustedError(message);
  if (error == ENOENT) return absl::NotFoundError(message);
  return absl::InternalError(message);
}

}  // namespace berth
