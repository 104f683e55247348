// LeaseKeeper: which agents have sent heartbeats recently. Counts on the steady clock, answers
// heartbeats without the loop, and on a tick posts the consequences of silence:
//
//   last heartbeat ----- lease -----> NodeSilenced ----- kill grace + margin -----> NodeFenced
//
// The agent counts its lease from when it sent the heartbeat, the server from when it answered:
// always later. Once silence is posted, no heartbeat of that epoch is answered any more; the agent
// must register again. So when NodeFenced comes, the agent's own lease has expired and its strict
// tasks have had their grace.
//
// A lease outlives the server that granted it. So the longest lease that any agent may hold is
// written to disk (meta record "lease") before it is granted. After a start, no node counts as
// silent before the usual lease of the previous server has passed, and no node is fenced before the
// longest one has, whatever is configured now. Then the record is lowered to the configured lease.
//
// A pause (BeginPause) grants every agent the remainder of the pause where that is longer than the
// usual lease. A node that falls silent in the meantime is fenced only when the longer lease is
// over, unless its agent has shown that it holds none: by a message of a later epoch, or after a
// later ack.
//
// After a restore nothing is placed until every node of the backup has come back, with its agent
// having ended the tasks of the previous store, or until `restore_hold` is over. Otherwise a job
// would start on the first node that comes back while it still runs on another node, unknown to the
// backup. This includes nodes that are lost in the backup, as they may have come back since. Until
// then the record says "restored", so that a restart in between changes nothing.
//
// The brake: while more than `brake_share` of the nodes that are not lost, and at least
// kBrakeLeastNodes, are silent together, nothing is fenced: the network or the server is broken,
// not that many machines. If a tick comes late (the server was stopped or starved), every node gets
// a whole new lease.
#ifndef BERTH_SERVER_CONTROLLERS_LEASE_KEEPER_H_
#define BERTH_SERVER_CONTROLLERS_LEASE_KEEPER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/model/ids.h"
#include "server/loop/loop.h"
#include "storage/codec.h"
#include "storage/store.h"
#include "support/clock.h"

namespace berth {

struct LeaseOptions {
  absl::Duration lease = absl::Seconds(15);
  absl::Duration fence_margin = absl::Seconds(5);
  double brake_share = 0.2;
  absl::Duration restore_hold = absl::Minutes(6);
  // From the store's record (ReadGrantedLease).
  GrantedLease granted_before;
};

// Zeros: no record, nothing was granted yet. DATA_LOSS naming an invalid record.
absl::StatusOr<GrantedLease> ReadGrantedLease(const Store& store);

// What a heartbeat reports about the agent's lease.
struct Beat {
  uint64_t sequence = 0;
  uint64_t acked = 0;                           // handled by the agent; 0 = only the Welcome
  absl::Duration lease = absl::ZeroDuration();  // held by the agent; 0: not reported
};

// Nodes for which placing waits after a restore, and for how long at most; 0: it does not wait.
struct RestoreHold {
  absl::Duration left;
  std::vector<NodeId> nodes;
};
// Extra time for an agent to end the tasks of the previous store, after its usual lease or that of
// a planned stop is over.
inline constexpr absl::Duration kForeignPatienceMargin = absl::Minutes(1);

struct PauseStatus {
  absl::Duration left;              // 0: nothing is paused
  int32_t holding = 0;              // agents that have confirmed the longer lease
  std::vector<NodeId> not_holding;  // the other nodes that are not lost
};

// With fewer silent nodes the brake is not applied: in a cluster of four, one dead node is a
// quarter.
inline constexpr int64_t kBrakeLeastNodes = 3;

class LeaseKeeper final : public TurnObserver {
 public:
  // Create before the loop's first turn. The clock outlives the keeper, the keeper the last turn.
  LeaseKeeper(Loop* loop, Clock* clock, LeaseOptions options = {});

  // Gives every node of the loaded state a whole lease (or, if silent, a whole fencing time) from
  // now. After a restore they all count as silent from the first turn on. Call before that turn.
  // `before`: what earlier servers granted, instead of LeaseOptions::granted_before.
  void Start(const GrantedLease& before) ABSL_LOCKS_EXCLUDED(mutex_);
  void Start() { Start(options_.granted_before); }

  // On the loop thread, in each turn that will grant a lease: records it if it is longer than the
  // one on disk.
  void RecordGrant(Turn& turn) ABSL_LOCKS_EXCLUDED(mutex_);
  // The node registered: grants a whole lease from now. Called when the registration is durable.
  void Registered(NodeId node, uint64_t epoch) ABSL_LOCKS_EXCLUDED(mutex_);
  // nullopt: no lease of that epoch is valid any more; do not reply. Otherwise the lease to grant
  // if it is longer than the usual one, or 0.
  std::optional<absl::Duration> Heartbeat(NodeId node, uint64_t epoch, const Beat& beat = {})
      ABSL_LOCKS_EXCLUDED(mutex_);

  // On the loop thread: records the longer lease. Once that is durable, grants it to agents and
  // calls `begun`. A running pause is replaced, or with `extend` never shortened.
  void BeginPause(Turn& turn, absl::Duration how_long, bool extend, std::function<void()> begun)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void EndPause() ABSL_LOCKS_EXCLUDED(mutex_);
  PauseStatus Pause() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The longer lease for an agent that has not confirmed it, without waiting for its heartbeat;
  // `sequence` is that of its last one. nullopt: there is none to grant.
  struct Grant {
    uint64_t sequence;
    absl::Duration lease;
  };
  std::optional<Grant> GrantNow(NodeId node, uint64_t epoch) ABSL_LOCKS_EXCLUDED(mutex_);
  RestoreHold Hold() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Call about every TickPeriod().
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Duration TickPeriod() const { return options_.lease / 16; }

  // Called (on the outbox thread) when the silence of a node is durable: its session must end. Set
  // before the first tick.
  void SetOnSilenced(std::function<void(NodeId, uint64_t epoch)> call) {
    on_silenced_ = std::move(call);
  }

  // Removes nodes that were deleted.
  Effect OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                       const ColdParts& cold) override;

  absl::Duration lease() const { return options_.lease; }
  // For metrics and alerts.
  bool braking() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t silent() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class Phase : uint8_t {
    kAlive,
    kSilencing,  // NodeSilenced is posted
    kSilent,     // NodeSilenced is durable
    kFencing,    // NodeFenced is posted
  };
  struct Lease {
    uint64_t epoch = 0;
    Phase phase = Phase::kAlive;
    absl::Duration heard;   // steady
    absl::Duration grace;   // while kSilent: longest kill grace of its strict tasks
    uint64_t sequence = 0;  // of its last heartbeat in this epoch
    // Steady; until then it may hold a lease longer than the usual one. 0: it does not.
    absl::Duration longer_end;
    // Part of it was granted in this epoch, last in an ack of heartbeat `longer_sequence`.
    bool longer_here = false;
    uint64_t longer_sequence = 0;
    bool confirmed = false;  // that it holds the lease of this pause
  };
  using Due = std::vector<std::pair<NodeId, uint64_t>>;  // with epoch

  // When the next heartbeat was due, and when its lease is over for certain, whichever server
  // granted it.
  absl::Duration SilentAt(const Lease& lease) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration EndOf(const Lease& lease) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration PauseLeft(absl::Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Note(Lease& lease, const Beat& beat) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration GrantLonger(Lease& lease, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool OnlyUsualLeasesLeft(absl::Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes the current record: later commands may have changed it since the caller was posted.
  void PutRecord(Turn& turn) ABSL_LOCKS_EXCLUDED(mutex_);
  void LowerRecord(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndHold(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);
  void ExtendLeasesIfLate(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Due TakeLapsed(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Due TakeFenceable(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountSilent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PostSilence(NodeId node, uint64_t epoch);
  void PostFence(NodeId node, uint64_t epoch);
  void SilenceAll(Turn& turn) ABSL_LOCKS_EXCLUDED(mutex_);
  void Silence(Turn& turn, NodeId node, uint64_t epoch);
  void Fence(Turn& turn, NodeId node, uint64_t epoch);
  // The lease of that epoch, or null.
  Lease* Find(NodeId node, uint64_t epoch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enter(NodeId node, uint64_t epoch, Phase phase, absl::Duration grace)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Drop(NodeId node, uint64_t epoch) ABSL_LOCKS_EXCLUDED(mutex_);

  Loop* const loop_;
  Clock* const clock_;
  const LeaseOptions options_;
  std::function<void(NodeId, uint64_t)> on_silenced_;

  mutable absl::Mutex mutex_;
  std::map<NodeId, Lease> leases_ ABSL_GUARDED_BY(mutex_);
  absl::Duration last_tick_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  GrantedLease recorded_ ABSL_GUARDED_BY(mutex_);          // on disk or on its way
  absl::Duration old_leases_end_ ABSL_GUARDED_BY(mutex_);  // usual leases of earlier servers;
                                                           // steady
  absl::Duration pause_end_ ABSL_GUARDED_BY(mutex_);       // steady; 0 = no pause
  bool holding_ ABSL_GUARDED_BY(mutex_) = false;           // nothing is placed, after a restore
  absl::Duration hold_end_ ABSL_GUARDED_BY(mutex_);        // latest end of the hold; steady
  std::set<NodeId> awaited_ ABSL_GUARDED_BY(mutex_);       // nodes awaited until then
  int starting_pauses_ ABSL_GUARDED_BY(mutex_) = 0;        // recorded, not durable yet
  bool braking_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t silent_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_LEASE_KEEPER_H_
