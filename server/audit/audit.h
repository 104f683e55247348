// Audit: who changed what, and who was refused (docs/developers/access.md, "Audit"). Two chains of
// files beside the store, written on a thread of their own.
#ifndef BERTH_SERVER_AUDIT_AUDIT_H_
#define BERTH_SERVER_AUDIT_AUDIT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "berth/v1/audit.pb.h"
#include "server/audit/audit_chain.h"
#include "server/audit/command_trail.h"
#include "server/audit/refused_calls.h"
#include "server/controllers/executor.h"
#include "storage/store.h"
#include "support/clock.h"

namespace berth {

// Which entries a caller wants.
struct AuditFilter {
  absl::Time since = absl::InfinitePast(), until = absl::InfiniteFuture();
  std::string actor, job;  // whole names; empty: all
};
bool Matches(const AuditFilter& filter, const v1::AuditEntry& entry);

class Audit {
 public:
  // `directory` is created if its parent exists; empty: nothing is written, and queries are
  // FAILED_PRECONDITION. Everything outlives the last call on the executor.
  Audit(const std::string& directory, AuditLimits limits, const Store* store, Executor* executor,
        Clock* clock);

  bool writes() const { return writes_; }
  // Entries of commands come from here: add it to the loop, if the audit writes.
  DurableListener* listener() { return &trail_; }
  // Thread-safe.
  RefusedCalls& refused() { return refused_; }
  // Writes what is left to write. Any thread; every kTick, and once at the start.
  void Tick();
  static constexpr absl::Duration kTick = absl::Seconds(1);

  // The executor's thread: `call` gets the chain with everything written that was durable.
  using Query = std::function<void(AuditChain& chain)>;
  void Ask(bool refused, Query call);

 private:
  // On the executor.
  void WriteAll(uint64_t durable = 0);
  void Complain(const absl::Status& status);

  const bool writes_;
  const Store* const store_;
  Executor* const executor_;
  Clock* const clock_;
  AuditChain commands_, refusals_;
  CommandTrail trail_;
  RefusedCalls refused_;
  std::atomic<bool> ticking_{false};
  absl::Time complained_ = absl::InfinitePast();
};

}  // namespace berth

#endif  // BERTH_SERVER_AUDIT_AUDIT_H_
