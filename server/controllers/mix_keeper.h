// MixKeeper: keeps planning informed of the mix of requests for devices and of their value.
//
//   submits -> DemandWatch -> when a mix is due: RequestMixChanged, as long as none has values yet
//                                  -> prices, on the worker -> RequestMixChanged with values
//
// Active only while devices of some node may be shared, and only for sharing policies that use a
// mix. What it learned survives the process: it continues from the mix in the state.
#ifndef BERTH_SERVER_CONTROLLERS_MIX_KEEPER_H_
#define BERTH_SERVER_CONTROLLERS_MIX_KEEPER_H_

#include <atomic>

#include "core/engine/search/demand_watch.h"
#include "server/controllers/executor.h"
#include "server/loop/loop.h"

namespace berth {

class MixKeeper final : public TurnObserver {
 public:
  // Finding prices takes seconds of CPU time on the worker. Both outlive it. It is destroyed after
  // the loop's turns and effects have ended and the worker's queue is empty.
  MixKeeper(Loop* loop, Executor* worker, const RequestMix& known)
      : loop_(loop), worker_(worker), watch_(known) {}

  Effect OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                       const ColdParts& cold) override;
  // Abandons price computations. Thread-safe.
  void Stop() { stopped_ = true; }

 private:
  void Post(Command command);
  void Give(Turn& turn, const DeviceDemand& learned);
  void FindPrices(const DeviceDemand& due);

  Loop* const loop_;
  Executor* const worker_;
  DemandWatch watch_;              // the loop's thread
  std::atomic<bool> busy_{false};  // a mix is being priced
  std::atomic<bool> stopped_{false};
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_MIX_KEEPER_H_
