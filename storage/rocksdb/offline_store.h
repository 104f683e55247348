// Opens a store that no berthd has open, for reading.
#ifndef BERTH_STORAGE_ROCKSDB_OFFLINE_STORE_H_
#define BERTH_STORAGE_ROCKSDB_OFFLINE_STORE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/rocksdb/rocksdb_store.h"

namespace berth {

// While it lives, no other process opens the store. Nothing is changed.
class OfflineStore {
 public:
  // NOT_FOUND: there is none. UNAVAILABLE: a berthd has it open. PERMISSION_DENIED: its LOCK cannot
  // be read. Else as RocksDbStore::Open. Works on read-only file systems.
  static absl::StatusOr<std::unique_ptr<OfflineStore>> Open(const std::string& directory);
  ~OfflineStore();
  OfflineStore(const OfflineStore&) = delete;
  OfflineStore& operator=(const OfflineStore&) = delete;

  RocksDbStore& store() { return *store_; }

 private:
  OfflineStore() = default;

  rocksdb::FileLock* lock_ = nullptr;
  int lock_fd_ = -1;  // used instead on read-only file systems
  std::unique_ptr<RocksDbStore> store_;
};

}  // namespace berth

#endif  // BERTH_STORAGE_ROCKSDB_OFFLINE_STORE_H_
