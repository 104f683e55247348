// MixKeeper: tells planning which requests for devices come, and what they are worth.
//
//   submits -> DemandWatch -> when a mix is due: RequestMixChanged, as long as none has values yet
//                                  -> prices, on the worker -> RequestMixChanged with values
//
// Only while devices of some node may be shared, and as far as the sharing policy goes by a mix.
// What it learned is not lost with the process: it goes on from the mix that the state holds.
#ifndef BERTH_SERVER_CONTROLLERS_MIX_KEEPER_H_
#define BERTH_SERVER_CONTROLLERS_MIX_KEEPER_H_

#include <atomic>

#include "core/engine/demand_watch.h"
#include "server/controllers/executor.h"
#include "server/loop.h"

namespace berth {

class MixKeeper final : public TurnObserver {
 public:
  // Finding prices takes seconds of CPU time on the worker. Both outlive it, the loop's turns and
  // effects have ended and the worker has run out before it is destroyed.
  MixKeeper(Loop* loop, Executor* worker, const RequestMix& known)
      : loop_(loop), worker_(worker), watch_(known) {}

  Effect OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                       const ColdParts& cold) override;
  // Prices that are being looked for are given up. Thread-safe.
  void Stop() { stopped_ = true; }

 private:
  void Post(Command command);
  void Give(Turn& turn, const DeviceDemand& learned);
  void FindPrices(const DeviceDemand& due);

  Loop* const loop_;
  Executor* const worker_;
  DemandWatch watch_;              // the loop's thread
  std::atomic<bool> busy_{false};  // a mix is under way
  std::atomic<bool> stopped_{false};
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_MIX_KEEPER_H_
