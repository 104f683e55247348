#include "storage/rocksdb/offline_store.h"

#include <rocksdb/env.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace berth {

// A read-only open takes no lock of its own, and would see a live store half changed.
absl::StatusOr<std::unique_ptr<OfflineStore>> OfflineStore::Open(const std::string& directory) {
  rocksdb::Env* env = rocksdb::Env::Default();
  if (env->FileExists(directory + "/CURRENT").IsNotFound()) {
    return absl::NotFoundError(directory + ": no store there");
  }
  rocksdb::FileLock* lock = nullptr;
  const rocksdb::Status locked = env->LockFile(directory + "/LOCK", &lock);
  if (!locked.ok()) {
    return absl::UnavailableError(
        absl::StrCat(directory, ": in use by another process (", locked.ToString(), ")"));
  }
  std::unique_ptr<OfflineStore> offline(new OfflineStore(lock));
  absl::StatusOr<std::unique_ptr<RocksDbStore>> store =
      RocksDbStore::Open({.directory = directory, .read_only = true});
  if (!store.ok()) return store.status();
  offline->store_ = *std::move(store);
  return offline;
}

OfflineStore::~OfflineStore() {
  store_.reset();
  rocksdb::Env::Default()->UnlockFile(lock_);
}

}  // namespace berth
