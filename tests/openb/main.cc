// Runs the sharing policies on the openb lists, and on the family of mixes made from them
// (docs/developers/benchmarks.md). Prints one line per mix: for each policy the mean over the
// orders of arrival, and the standard deviation.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/openb/mixes.h"
#include "tests/openb/run.h"

namespace berth::openb {
namespace {

const std::map<std::string, SharingPolicy> kPolicies = {
    {"spread", SharingPolicy::kSpread},
    {"binpack", SharingPolicy::kBinpack},
    {"fragmentation", SharingPolicy::kFragmentation},
    {"bid_price", SharingPolicy::kBidPrice},
    {"fgd", SharingPolicy::kFgd}};

struct Arguments {
  std::string folder;
  std::vector<std::string> mixes;
  std::vector<std::string> policies = {"bid_price", "fragmentation", "fgd"};
  std::vector<uint64_t> seeds = {42, 43, 44, 45, 46, 47, 48, 49, 50, 51};
  size_t known = 400;
};

struct Figures {
  double mean = 0, deviation = 0;
  double cpu = 0, memory = 0;  // used when 100 % had been requested, in percent
  double seconds = 0;          // deciding, per run
};

Figures FiguresOf(const Trace& trace, const Arguments& arguments, SharingPolicy policy) {
  std::vector<double> found;
  Figures figures;
  const auto count = static_cast<double>(arguments.seeds.size());
  for (const uint64_t seed : arguments.seeds) {
    const RunResult run = Run(trace, {.policy = policy, .seed = seed, .known = arguments.known});
    found.push_back(run.at_100);
    figures.mean += run.at_100 / count;
    figures.cpu += run.cpu_at_100 / count;
    figures.memory += run.memory_at_100 / count;
    figures.seconds += run.decide_seconds / count;
  }
  for (const double one : found) {
    figures.deviation += (one - figures.mean) * (one - figures.mean) / count;
  }
  figures.deviation = std::sqrt(figures.deviation);
  return figures;
}

// The CPU and memory columns are those of the first policy.
void Print(const std::string& mix, const std::vector<Figures>& all) {
  std::string line = absl::StrFormat("| %-36s |", mix);
  for (const Figures& one : all) {
    absl::StrAppendFormat(&line, " %6.2f +- %.2f |", one.mean, one.deviation);
  }
  double best = 0;
  for (size_t i = 1; i < all.size(); ++i) best = std::max(best, all[i].mean);
  absl::StrAppendFormat(&line, " %+6.2f | %3.0f | %3.0f |", all[0].mean - best, all[0].cpu,
                        all[0].memory);
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

int Main(int argc, char** argv) {
  CLI::App app{"Fills the openb cluster from its request lists, one policy after the other"};
  Arguments arguments;
  app.add_option("FOLDER", arguments.folder, "With openb_node_list_gpu_node.csv.gz and the lists")
      ->required();
  app.add_option(
         "--mix", arguments.mixes,
         "LIST [FACTOR=NUMBER]..., factors cpu, memory, fraction, several, model, cpu-only; "
         "may be repeated; default: the whole family")
      ->allow_extra_args(false);
  app.add_option("--policy", arguments.policies, "The first is compared with the best other")
      ->delimiter(',')
      ->check(CLI::IsMember(kPolicies));
  app.add_option("--seeds", arguments.seeds, "Seeds of the orders of arrival")->delimiter(',');
  app.add_option("--known", arguments.known, "Number of requests of the list seen before");
  CLI11_PARSE(app, argc, argv);
  if (arguments.mixes.empty()) arguments.mixes = Family();
  std::string title = "| mix |";
  for (const std::string& policy : arguments.policies) absl::StrAppend(&title, " ", policy, " |");
  std::printf("%s difference to the best other | CPU used | memory used |\n", title.c_str());
  for (const std::string& text : arguments.mixes) {
    const absl::StatusOr<Mix> mix = ParseMix(text);
    if (!mix.ok()) {
      std::fprintf(stderr, "%s\n", std::string(mix.status().message()).c_str());
      return 2;
    }
    const Trace trace = Changed(Load(arguments.folder, mix->list), *mix);
    std::vector<Figures> all;
    for (const std::string& policy : arguments.policies) {
      all.push_back(FiguresOf(trace, arguments, kPolicies.at(policy)));
    }
    Print(text, all);
  }
  return 0;
}

}  // namespace
}  // namespace berth::openb

int main(int argc, char** argv) { return berth::openb::Main(argc, argv); }
