// CommandTrail: writes an audit entry for each command of the log once it is durable. The entries
// follow from the log: what a crash or a full disk kept from being written is read from it again.
#ifndef BERTH_SERVER_AUDIT_COMMAND_TRAIL_H_
#define BERTH_SERVER_AUDIT_COMMAND_TRAIL_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/audit/audit_chain.h"
#include "server/controllers/executor.h"
#include "server/loop/turn.h"
#include "storage/store.h"
#include "support/clock.h"

namespace berth {

class CommandTrail final : public DurableListener {
 public:
  // All outlive the trail's last call on the executor. `durable`: the store's last batch.
  CommandTrail(const Store* store, AuditChain* chain, Executor* executor, Clock* clock,
               uint64_t durable);

  void OnTurnDurable(uint64_t revision, std::shared_ptr<const std::vector<Event>> events,
                     std::shared_ptr<const std::string> turn) override ABSL_LOCKS_EXCLUDED(mutex_);

  // On the executor. Writes what it was told to be durable, and everything up to `durable`, that is
  // not written yet. An error is that of the last attempt, which the next one repeats.
  absl::Status Write(uint64_t durable = 0) ABSL_LOCKS_EXCLUDED(mutex_);

  // On the executor: all commands up to this batch have their entries.
  uint64_t done() const { return done_; }

  static constexpr size_t kWaiting = 64;  // turns kept in memory; others are read from the store
  static constexpr size_t kReadAtOnce = 100;

 private:
  struct Waiting {
    uint64_t revision = 0;
    std::shared_ptr<const std::string> turn;
  };

  absl::Status Begin(uint64_t target);
  absl::Status Take(uint64_t revision, absl::string_view turn);
  absl::Status TakeFromStore(uint64_t target);
  absl::Status SkipAged(uint64_t target);
  absl::Status WriteTo(std::deque<Waiting> waiting, uint64_t target);

  const Store* const store_;
  AuditChain* const chain_;
  Executor* const executor_;
  Clock* const clock_;
  const uint64_t started_;  // the store's last batch then

  absl::Mutex mutex_;
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t target_ ABSL_GUARDED_BY(mutex_);  // the last durable batch
  bool scheduled_ ABSL_GUARDED_BY(mutex_) = false;

  // The executor's thread.
  bool begun_ = false, looked_ = false;
  uint64_t foreign_ = 0;  // the chain's last entry, if that is of a store before a restore
  uint64_t done_ = 0;     // batches up to here are written
  uint64_t again_ = 0;    // this batch may be written in part,
  uint32_t parts_ = 0;    // by so many entries
  bool fresh_ = false;    // the chain was empty when this process began
};

}  // namespace berth

#endif  // BERTH_SERVER_AUDIT_COMMAND_TRAIL_H_
