// berth-openb FOLDER [--policy NAME]... [--list NAME]... [--seeds N] [--known N] [--rooms-every N]
//
// How much of the openb cluster is given out under each sharing policy; the mean over the seeds,
// and the standard deviation.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "tests/openb/run.h"

namespace berth::openb {
namespace {

const std::map<std::string, SharingPolicy> kPolicies = {
    {"spread", SharingPolicy::kSpread},
    {"binpack", SharingPolicy::kBinpack},
    {"fgd", SharingPolicy::kFgd},
    {"fragmentation", SharingPolicy::kFragmentation},
    {"bid_price", SharingPolicy::kBidPrice},
};

struct Figures {
  std::vector<double> values;
  double Mean() const {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }
  double Deviation() const {
    double sum = 0;
    for (const double value : values) sum += (value - Mean()) * (value - Mean());
    return values.size() < 2 ? 0 : std::sqrt(sum / static_cast<double>(values.size() - 1));
  }
};

void Report(const std::string& list, const std::string& policy, RunOptions options, int seeds,
            const Trace& trace) {
  Figures at_100;
  Figures at_130;
  RunResult slowest;
  for (int seed = 0; seed < seeds; ++seed) {
    options.seed = 42 + static_cast<uint64_t>(seed);
    const RunResult result = Run(trace, options);
    at_100.values.push_back(result.at_100);
    at_130.values.push_back(result.at_130);
    slowest.decide_seconds = std::max(slowest.decide_seconds, result.decide_seconds);
    slowest.pricing_seconds = std::max(slowest.pricing_seconds, result.pricing_seconds);
    slowest.mixes = std::max(slowest.mixes, result.mixes);
  }
  std::printf("%-11s %-14s %5.2f +- %.2f  %5.2f +- %.2f  decided in %.2f s, %d mixes of %.2f s\n",
              list.c_str(), policy.c_str(), at_100.Mean(), at_100.Deviation(), at_130.Mean(),
              at_130.Deviation(), slowest.decide_seconds, slowest.mixes, slowest.pricing_seconds);
  std::fflush(stdout);
}

}  // namespace
}  // namespace berth::openb

int main(int argc, char** argv) {
  using namespace berth::openb;  // NOLINT: a program of one file
  std::string folder;
  std::vector<std::string> policies = {"spread", "binpack", "fgd", "fragmentation", "bid_price"};
  std::vector<std::string> lists(std::begin(kLists), std::end(kLists));
  RunOptions options;
  int seeds = 10;
  CLI::App app(
      "The openb lists under the sharing policies: GPUs given out, in per cent, when 100 % "
      "and 130 % of the cluster had been asked for.");
  app.add_option("FOLDER", folder, "of the lists")->required();
  app.add_option("--policy", policies, "default: all");
  app.add_option("--list", lists, "default: all five");
  app.add_option("--seeds", seeds)->capture_default_str();
  app.add_option("--known", options.known, "requests of the list known before: a warm start");
  app.add_option("--rooms-every", options.rooms_every,
                 "arrivals after which to price what is left");
  CLI11_PARSE(app, argc, argv);
  for (const std::string& list : lists) {
    const berth::openb::Trace trace = Load(folder, list);
    for (const std::string& policy : policies) {
      options.policy = kPolicies.at(policy);
      Report(list, policy, options, seeds, trace);
    }
  }
  return 0;
}
