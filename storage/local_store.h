// LocalStore: a store on this machine that another log is ahead of (storage/replication). What is
// appended behind that log need not be on disk at once: after a power cut the rest comes from
// there.
#ifndef BERTH_STORAGE_LOCAL_STORE_H_
#define BERTH_STORAGE_LOCAL_STORE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "storage/hash_chain.h"
#include "storage/store.h"

namespace berth {

class LocalStore : public Store {
 public:
  // Of the last batch, in the hash chain. The thread that appends.
  virtual ChainHash LastHash() const = 0;
  // As Append, but returns before the batches are synced. A crash of the process loses nothing; a
  // power cut may lose the newest of them.
  virtual absl::Status AppendBehind(const std::vector<const Batch*>& batches) = 0;
  // Makes all that was appended before the call durable. Thread-safe, also during AppendBehind. An
  // error ends the process, as for Append.
  virtual absl::Status Sync() = 0;
  // The last batch that is durable. Thread-safe.
  virtual uint64_t SyncedSequence() const = 0;
};

}  // namespace berth

#endif  // BERTH_STORAGE_LOCAL_STORE_H_
