// MigKeeper: has GPUs in MIG mode divided again for pending jobs that need instances which no GPU
// has.
//
//   a class has waited for kPatience, and a GPU that would help was idle for as long
//     -> DivideGpu -> the agent registers the GPU's instances as not allocatable (they are "held")
//     -> DivideGpu -> the agent divides the GPU, and registers its new instances
//
// Only these registrations change the state. So a placement on the GPU before it is held is seen
// before its instance would be destroyed, and nothing here must outlive the server: a new server
// sees the pending jobs and the GPUs as they are. A GPU that was divided, or could not be, is left
// alone for a while: kCoolDown, doubled after each failure in a row. One GPU of a node at a time;
// core/engine/search/mig_division.h decides which, and how.
#ifndef BERTH_SERVER_CONTROLLERS_MIG_KEEPER_H_
#define BERTH_SERVER_CONTROLLERS_MIG_KEEPER_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/engine/search/mig_division.h"
#include "server/controllers/agent_gateway.h"
#include "server/loop/loop.h"

namespace berth {

class MigKeeper final : public TurnObserver {
 public:
  static constexpr absl::Duration kTick = absl::Seconds(1);
  static constexpr absl::Duration kPatience = absl::Seconds(5);
  static constexpr absl::Duration kCoolDown = absl::Minutes(1);
  static constexpr absl::Duration kMaxCoolDown = absl::Minutes(30);
  // Of one division, from the first message on: the driver's time, and two registrations.
  static constexpr absl::Duration kTimeout = absl::Minutes(3);
  static constexpr int kMaxMessages = 4;  // of one division: two, and two more that may get lost
  static constexpr size_t kMaxDivisions = 64;
  // This blocks the loop. So each pass takes a few classes and tries a few layouts, and the next
  // pass continues there. A class that no GPU helps is tried again after kRest.
  static constexpr size_t kMaxClasses = 16;
  static constexpr size_t kMaxKept = 128;  // classes at rest, whose wants are kept for them
  static constexpr int kMaxTries = 1000;
  static constexpr int kMaxStarts = 4;
  static constexpr absl::Duration kRest = absl::Seconds(10);

  // Both outlive it, and it outlives the loop's turns and effects. Create before the first turn.
  MigKeeper(Loop* loop, AgentGateway* gateway);

  // About every kTick, on the loop's thread and not within a turn. Free if no node divides GPUs.
  void Tick();
  Effect OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                       const ColdParts& cold) override;

  // Running totals for metrics.
  struct Counters {
    std::atomic<uint64_t> done{0}, failed{0};
  };
  const Counters& counters() const { return counters_; }

 private:
  using Gpu = std::pair<NodeId, std::string>;
  struct Division {
    MigDivision what;
    uint64_t epoch = 0;  // of the registration that last got a message
    Time started;
    int messages = 0;
  };
  struct Rest {
    Time until = absl::InfinitePast();
    int failures = 0;  // in a row
  };

  struct Waiting {
    Time since;       // when it was first seen pending
    size_t from = 0;  // as in MigSeeker, and hopeless
    bool hopeless = false;
    Time rests_until = absl::InfinitePast();
  };

  void Look(Turn& turn);
  void Follow(Turn& turn);
  bool Goes(Turn& turn, Division& division);
  void End(const Division& division, Time now, bool done, absl::string_view why);
  void Send(Turn& turn, Division& division);
  void NoteIdle(const ClusterState& state, Time now);
  void NoteWaiting(const ClusterState& state, Time now);
  std::vector<MigSeeker> Seekers(Time now) const;
  void NoteSeekers(absl::Span<const MigSeeker> seekers, Time now);

  Loop* const loop_;
  AgentGateway* const gateway_;
  Counters counters_;
  // The loop's thread.
  std::set<NodeId> nodes_;  // nodes that divide GPUs
  std::vector<Division> divisions_;
  std::vector<ClassId> order_;  // of pending classes
  std::map<ClassId, Waiting> waiting_;
  std::map<Gpu, Time> idle_;  // since when each was seen idle
  std::map<Gpu, Rest> rests_;
  bool posted_ = false;
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_MIG_KEEPER_H_
