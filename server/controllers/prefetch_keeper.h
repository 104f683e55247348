// PrefetchKeeper: has nodes pull images for jobs that will start there soon, by their reservations:
// once for each job, group and node. A message that is lost is not repeated: the task pulls for
// itself then. Nothing here must outlive the server.
#ifndef BERTH_SERVER_CONTROLLERS_PREFETCH_KEEPER_H_
#define BERTH_SERVER_CONTROLLERS_PREFETCH_KEEPER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/time/time.h"
#include "core/model/cluster_state.h"
#include "server/controllers/dispatcher.h"
#include "server/loop/loop.h"

namespace berth {

class PrefetchKeeper {
 public:
  static constexpr absl::Duration kTick = absl::Seconds(5);
  static constexpr absl::Duration kAhead = absl::Minutes(15);  // of the start of the reservation
  static constexpr size_t kMaxMessages = 1000;                 // of one tick; the next one goes on

  // Both outlive it.
  PrefetchKeeper(Loop* loop, Dispatcher* dispatcher) : loop_(loop), dispatcher_(dispatcher) {}

  // About every kTick, on the loop's thread and not within a turn. Free without reservations.
  void Tick();

 private:
  using Place = std::pair<NodeId, uint32_t>;  // and the group
  using Told = std::map<JobId, std::set<Place>>;
  void Look(Turn& turn);

  Loop* const loop_;
  Dispatcher* const dispatcher_;
  bool posted_ = false;
  Told told_;  // of the reservations as they are
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_PREFETCH_KEEPER_H_
