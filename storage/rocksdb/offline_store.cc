#include "storage/rocksdb/offline_store.h"

#include <fcntl.h>
#include <rocksdb/env.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/rocksdb/database.h"

namespace berth {
namespace {

absl::Status CannotLock(const std::string& path, int error) {
  return absl::PermissionDeniedError(absl::StrCat("cannot open ", path, ": ", std::strerror(error),
                                                  "; it is needed to check that no berthd uses the "
                                                  "store: run as the user of berthd, or as root"));
}

// A lock that excludes RocksDB's lock in berthd (fcntl, for writing) but needs no write permission,
// which a read-only file system does not grant. -1: there is no lock file, so no berthd has opened
// this copy.
absl::StatusOr<int> LockForReading(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return -1;
  if (fd < 0) return CannotLock(path, errno);
  struct flock lock {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(fd, F_SETLK, &lock) == 0) return fd;
  const int error = errno;
  close(fd);
  if (error != EACCES && error != EAGAIN) return CannotLock(path, error);
  return absl::UnavailableError(absl::StrCat(path, ": in use by another process"));
}

}  // namespace

// A read-only open takes no lock, and could read a live store in the middle of a change.
absl::StatusOr<std::unique_ptr<OfflineStore>> OfflineStore::Open(const std::string& directory) {
  rocksdb::Env* env = rocksdb::Env::Default();
  if (env->FileExists(directory + "/CURRENT").IsNotFound()) {
    return absl::NotFoundError(directory + ": no store there");
  }
  const std::string path = directory + "/LOCK";
  std::unique_ptr<OfflineStore> offline(new OfflineStore());
  const rocksdb::Status locked = env->LockFile(path, &offline->lock_);
  if (IsLocked(locked)) {
    return absl::UnavailableError(
        absl::StrCat(directory, ": in use by another process (", locked.ToString(), ")"));
  }
  if (!locked.ok()) {
    const absl::StatusOr<int> fd = LockForReading(path);
    if (!fd.ok()) return fd.status();
    offline->lock_fd_ = *fd;
  }
  absl::StatusOr<std::unique_ptr<RocksDbStore>> store =
      RocksDbStore::Open({.directory = directory, .read_only = true});
  if (!store.ok()) return store.status();
  offline->store_ = *std::move(store);
  return offline;
}

OfflineStore::~OfflineStore() {
  store_.reset();
  if (lock_ != nullptr) rocksdb::Env::Default()->UnlockFile(lock_);
  if (lock_fd_ >= 0) close(lock_fd_);
}

}  // namespace berth
