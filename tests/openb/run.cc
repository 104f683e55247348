#include "tests/openb/run.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include "core/sharing/host_resource.h"
#include "core/sharing/mix_learner.h"
#include "core/sharing/score_board.h"
#include "pricing/prices.h"

namespace berth::openb {
namespace {

// Of this process, which has one thread: other load on the machine does not count.
double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double PercentOf(int64_t part, int64_t all) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(all);
}

class Cluster {
 public:
  Cluster(const Trace& trace, const RunOptions& options)
      : trace_(trace), options_(options), board_(PlacementScorer(options.policy, {})) {
    for (const Node& node : trace.nodes) rooms_.push_back(node.room);
    empty_ = rooms_;
    CountRooms();
    for (const Request& request : Sample(trace, options.known, options.seed)) {
      learner_.Observe(request);
    }
    LearnIfDue();
  }

  void Arrive(const Pod& pod) {
    const double start = CpuSeconds();
    Place(pod);
    result_.decide_seconds += CpuSeconds() - start;
    learner_.Observe(pod.request);
    LearnIfDue();
    if (options_.rooms_every > 0 && result_.arrived % options_.rooms_every == 0) Reprice();
  }

  RunResult& result() { return result_; }
  double Percent() const { return PercentOf(given_, trace_.devices * kWholeDevice); }
  void At100() {
    int64_t cpu = 0, cpu_left = 0, memory = 0, memory_left = 0;
    for (size_t i = 0; i < rooms_.size(); ++i) {
      cpu += empty_[i].cpu_millis;
      memory += empty_[i].memory_mib;
      cpu_left += rooms_[i].cpu_millis;
      memory_left += rooms_[i].memory_mib;
    }
    result_.at_100 = Percent();
    result_.cpu_at_100 = PercentOf(cpu - cpu_left, cpu);
    result_.memory_at_100 = PercentOf(memory - memory_left, memory);
  }

 private:
  void Place(const Pod& pod) {
    ++result_.arrived;
    const auto place = board_.Best(Counted(pod.request, mix_.mib_per_core),
                                   [&](size_t node) { return Fits(pod.request, rooms_[node]); });
    const uint64_t chosen = place.has_value() ? place->node + 1 : 0;
    result_.digest = (result_.digest ^ chosen) * 0x100000001b3u + 1;
    if (!place.has_value()) return;
    ++result_.placed;
    given_ += pod.request.amount();
    rooms_[place->node] = After(rooms_[place->node], pod.request, place->from);
    board_.Set(place->node, Counted(rooms_[place->node], mix_.mib_per_core));
  }

  void LearnIfDue() {
    const bool by_mix =
        options_.policy != SharingPolicy::kSpread && options_.policy != SharingPolicy::kBinpack;
    if (!by_mix || !learner_.Due()) return;
    ++result_.mixes;
    DeviceDemand demand = CountedFor(options_.policy, {learner_.Give(trace_.models), empty_});
    mix_ = std::move(demand.mix);
    CountRooms();
    Use(options_.policy == SharingPolicy::kBidPrice ? Priced({mix_, demand.rooms}) : mix_);
  }

  // In the unit of the mix.
  void CountRooms() {
    for (size_t i = 0; i < rooms_.size(); ++i) {
      board_.Set(i, Counted(rooms_[i], mix_.mib_per_core));
    }
  }

  void Reprice() {
    if (mix_.types.empty()) return;
    Use(Priced({mix_, board_.rooms()}));
  }

  RequestMix Priced(const DeviceDemand& demand) {
    const double start = CpuSeconds();
    auto priced = PricedFor(demand, PriceOptions{});
    if (!priced.ok()) {
      std::fprintf(stderr, "%s\n", priced.status().ToString().c_str());
      std::exit(1);
    }
    result_.pricing_seconds = std::max(result_.pricing_seconds, CpuSeconds() - start);
    return *std::move(priced);
  }

  void Use(RequestMix mix) {
    const double start = CpuSeconds();
    board_.Use(PlacementScorer(options_.policy, std::move(mix)));
    result_.decide_seconds += CpuSeconds() - start;
  }

  const Trace& trace_;
  const RunOptions& options_;
  ScoreBoard board_;
  std::vector<NodeRoom> rooms_, empty_;  // actual, now and at the start; the board's are counted
  MixLearner learner_;
  RequestMix mix_;
  int64_t given_ = 0;
  RunResult result_;
};

}  // namespace

RunResult Run(const Trace& trace, const RunOptions& options) {
  Cluster cluster(trace, options);
  int64_t demand = 0;
  bool reached = false;
  for (const Pod& pod : Arrivals(trace, options.seed)) {
    if (cluster.result().arrived == options.most_pods) break;
    cluster.Arrive(pod);
    demand += pod.request.amount();
    if (!reached && demand >= trace.devices * kWholeDevice) {
      reached = true;
      cluster.At100();
    }
  }
  cluster.result().at_130 = cluster.Percent();
  return cluster.result();
}

}  // namespace berth::openb
