#include "storage/space_reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr uint64_t kBlockBytes = 512;  // unit of st_blocks
constexpr uint64_t kMebibyte = uint64_t{1} << 20;

uint64_t FreeBytes(const std::string& directory) {
  struct statvfs info;
  if (statvfs(directory.c_str(), &info) != 0) return 0;
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace

SpaceReserve::SpaceReserve(std::string directory)
    : directory_(std::move(directory)), path_(directory_ + "/RESERVE") {
  absl::MutexLock lock(&mutex_);
  Look();
}

// A file without allocated blocks, such as a sparse copy, is not a reserve.
void SpaceReserve::Look() {
  struct stat info;
  made_ = stat(path_.c_str(), &info) == 0;
  bytes_ = made_ ? std::min(static_cast<uint64_t>(info.st_size),
                            static_cast<uint64_t>(info.st_blocks) * kBlockBytes)
                 : 0;
}

void SpaceReserve::Fill() {
  absl::MutexLock lock(&mutex_);
  if (bytes_ >= kBytes) return;
  if (FreeBytes(directory_) < kBytes - bytes_ + kRoomBytes) return;
  const int fd = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return;
  const int error = posix_fallocate(fd, 0, static_cast<off_t>(kBytes));
  if (error != 0 && ftruncate(fd, static_cast<off_t>(bytes_)) != 0) {
    LogWarn("the reserve cannot be restored", {{"file", path_}, {"error", strerror(errno)}});
  }
  close(fd);
  if (error != 0) return;
  if (made_) LogInfo("the reserve for a full disk is complete again", {{"file", path_}});
  made_ = true;
  bytes_ = kBytes;
}

bool SpaceReserve::GiveUp(uint64_t keep) {
  absl::MutexLock lock(&mutex_);
  if (bytes_ <= keep) return false;
  const uint64_t left = bytes_ - std::min(kStepBytes, bytes_ - keep);
  if (truncate(path_.c_str(), static_cast<off_t>(left)) != 0) return false;
  LogWarn("the disk is full: released a part of the reserve; new work waits for space",
          {{"file", path_}, {"left_mib", left / kMebibyte}});
  bytes_ = left;
  return true;
}

uint64_t SpaceReserve::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

std::string SpaceReserve::LowSpace() const {
  absl::MutexLock lock(&mutex_);
  if (!made_ || bytes_ >= kBytes) return "";
  return absl::StrCat("disk full: ", (kBytes - bytes_) / kMebibyte, " MiB of the reserve ", path_,
                      " were released; new work waits until ",
                      (kBytes - bytes_ + kRoomBytes) / kMebibyte, " MiB are free");
}

}  // namespace berth
