#include "tests/openb/mixes.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace berth::openb {
namespace {

struct Word {
  const char* name;
  double Mix::*factor;
};
constexpr Word kWords[] = {{"cpu", &Mix::cpu},           {"memory", &Mix::memory},
                           {"fraction", &Mix::fraction}, {"several", &Mix::several},
                           {"model", &Mix::model},       {"cpu-only", &Mix::cpu_only}};

// Clamps CPU and memory to the most that nodes have on which the request's devices fit.
void Clamp(const Trace& trace, Pod* pod) {
  Request devices_alone = pod->request;
  devices_alone.cpu_millis = 0;
  devices_alone.memory_mib = 0;
  int64_t cpu = 0, memory = 0;
  for (const Node& node : trace.nodes) {
    if (!Fits(devices_alone, node.room)) continue;
    cpu = std::max(cpu, node.room.cpu_millis);
    memory = std::max(memory, node.room.memory_mib);
  }
  pod->request.cpu_millis = std::min(pod->request.cpu_millis, cpu);
  pod->request.memory_mib = std::min(pod->request.memory_mib, memory);
}

double TimesOf(const Pod& pod, const Mix& mix) {
  double times = 1;
  if (pod.request.share > 0) times *= mix.fraction;
  if (pod.request.devices > 1) times *= mix.several;
  if (pod.request.models != 0) times *= mix.model;
  if (pod.request.amount() == 0) times *= mix.cpu_only;
  return times;
}

int64_t Scaled(int64_t amount, double factor) {
  return std::llround(static_cast<double>(amount) * factor);
}

}  // namespace

absl::StatusOr<Mix> ParseMix(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  Mix mix;
  if (!words.empty()) mix.list = words[0];
  if (std::find(std::begin(kLists), std::end(kLists), mix.list) == std::end(kLists)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\": unknown list"));
  }
  for (size_t i = 1; i < words.size(); ++i) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(words[i], '=');
    const auto* word = std::find_if(std::begin(kWords), std::end(kWords),
                                    [&](const Word& one) { return one.name == pair.first; });
    double factor = 0;
    const bool good = word != std::end(kWords) && absl::SimpleAtod(pair.second, &factor);
    if (!good || !(factor >= 0 && factor <= 100)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", words[i], "\": not FACTOR=0..100"));
    }
    mix.*(word->factor) = factor;
  }
  return mix;
}

std::vector<std::string> Family() {
  std::vector<std::string> family;
  for (const char* list : kLists) {
    for (const char* change :
         {"", " cpu=0.25", " cpu=0.5", " cpu=1.5", " cpu=2", " cpu=4", " memory=2", " memory=4"}) {
      family.push_back(absl::StrCat(list, change));
    }
  }
  for (const char* cpu : {"", " cpu=1.5", " cpu=2"}) {
    for (const char* change :
         {"default fraction=3", "default fraction=0", "default several=4", "gpuspec10 model=4",
          "gpuspec10 model=4 several=4", "multigpu20 several=3", "default cpu-only=3"}) {
      family.push_back(absl::StrCat(change, cpu));
    }
  }
  for (const char* both : {"default cpu=2 memory=2", "multigpu20 cpu=2 memory=2 several=3",
                           "gpushare40 cpu=4 memory=4"}) {
    family.push_back(both);
  }
  return family;
}

Trace Changed(Trace trace, const Mix& mix) {
  std::vector<Pod> pods;
  double due = 0;
  for (Pod pod : trace.pods) {
    pod.request.cpu_millis = Scaled(pod.request.cpu_millis, mix.cpu);
    pod.request.memory_mib = Scaled(pod.request.memory_mib, mix.memory);
    Clamp(trace, &pod);
    for (due += TimesOf(pod, mix); due >= 1; --due) pods.push_back(pod);
  }
  trace.pods = std::move(pods);
  return trace;
}

}  // namespace berth::openb
