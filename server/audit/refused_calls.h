// RefusedCalls: notes calls that were refused. Bounded in memory, on disk and in time: of a flood
// it keeps the first ones of each second, and how many more there were.
#ifndef BERTH_SERVER_AUDIT_REFUSED_CALLS_H_
#define BERTH_SERVER_AUDIT_REFUSED_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/access/actor.h"
#include "server/audit/audit_chain.h"
#include "support/clock.h"

namespace berth {

class RefusedCalls {
 public:
  // Both outlive it.
  RefusedCalls(AuditChain* chain, Clock* clock) : chain_(chain), clock_(clock) {}

  // `actor` names the method. `target`: "job/train", "queue/team-a", or empty for the cluster.
  // `refusal` is what the caller was told. Thread-safe; never waits for the disk.
  void Note(const Actor& actor, absl::string_view target, const absl::Status& refusal)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // On the executor, about once a second: writes what was noted. What cannot be written is counted.
  absl::Status Write() ABSL_LOCKS_EXCLUDED(mutex_);

  static constexpr size_t kPerActor = 10;   // entries between two writes, and in one second
  static constexpr size_t kTogether = 100;  // of all actors
  static constexpr size_t kActors = 1000;   // counted one by one; the rest as one
  static constexpr size_t kMaxTarget = 264;
  static constexpr size_t kMaxMessage = 512;

 private:
  using Key = std::pair<Principal::Kind, std::string>;
  struct Count {
    size_t noted = 0;   // entries since the last write
    uint64_t more = 0;  // calls without an entry
    Door door = Door::kUnknown;
  };

  Count* CountOf(const Actor& actor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepCounts(std::map<Key, Count> counts, const std::vector<v1::AuditEntry>& lost)
      ABSL_LOCKS_EXCLUDED(mutex_);

  AuditChain* const chain_;
  Clock* const clock_;
  absl::Mutex mutex_;
  std::vector<v1::AuditEntry> entries_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, Count> counts_ ABSL_GUARDED_BY(mutex_);
  uint64_t others_ ABSL_GUARDED_BY(mutex_) = 0;  // calls of actors beyond kActors
};

}  // namespace berth

#endif  // BERTH_SERVER_AUDIT_REFUSED_CALLS_H_
