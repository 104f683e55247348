#include "offline/replay/training_costs.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "support/nearest.h"
#include "support/proto_time.h"

namespace berth::replay {
namespace {

constexpr Duration kLeastInterval = absl::Seconds(1);

// Null: none applies. INVALID_ARGUMENT if the job names a class that has no entry.
absl::StatusOr<const sim::v1::TrainingCosts*> EntryOf(const TrainingEntries& entries,
                                                      const TraceJob& job) {
  const sim::v1::TrainingCosts* others = nullptr;
  std::vector<std::string> known;
  for (const sim::v1::TrainingCosts& one : entries) {
    if (one.name().empty()) {
      others = &one;
    } else if (one.name() == job.training) {
      return &one;
    }
    known.push_back(one.name());
  }
  if (others != nullptr || job.training.empty() || entries.empty()) return others;
  return absl::InvalidArgumentError(absl::StrCat(
      job.name, ": ", UnknownWord("training has no entry for the class", job.training, known)));
}

TrainingCosts CostsOfOne(const sim::v1::TrainingCosts* entry, Duration interval,
                         const TraceJob& job) {
  TrainingCosts costs{.interval = interval, .checkpoint = {}, .restart = {}};
  if (entry != nullptr) {
    if (entry->has_checkpoint_interval()) {
      costs.interval = DurationFrom(entry->checkpoint_interval());
    }
    costs.checkpoint = DurationFrom(entry->checkpoint_cost());
    costs.restart = DurationFrom(entry->restart_cost());
  }
  if (job.spec != nullptr && job.spec->checkpoint_interval != absl::InfiniteDuration()) {
    costs.interval = job.spec->checkpoint_interval;
  }
  costs.interval = job.costs.interval.value_or(costs.interval);
  costs.checkpoint = job.costs.checkpoint.value_or(costs.checkpoint);
  costs.restart = job.costs.restart.value_or(costs.restart);
  return costs;
}

}  // namespace

TrainingTime TrainingTimeOf(const TrainingCosts& costs, bool again, Duration time) {
  TrainingTime parts;
  if (again) parts.restart = std::min(time, costs.restart);
  const Duration trains = time - parts.restart;
  if (costs.interval == absl::InfiniteDuration()) {
    parts.unsaved = trains;
    return parts;
  }
  Duration rest;
  const int64_t made = absl::IDivDuration(trains, costs.interval + costs.checkpoint, &rest);
  parts.saved = made * costs.interval;
  parts.unsaved = std::min(rest, costs.interval);
  parts.checkpoints = made * costs.checkpoint + (rest - parts.unsaved);
  return parts;
}

Duration TimeToTrain(const TrainingCosts& costs, bool again, Duration work) {
  const Duration begin = again ? costs.restart : absl::ZeroDuration();
  if (costs.interval == absl::InfiniteDuration() || work <= absl::ZeroDuration()) {
    return begin + work;
  }
  Duration rest;
  const int64_t whole = absl::IDivDuration(work, costs.interval, &rest);
  const int64_t checkpoints = rest == absl::ZeroDuration() ? whole - 1 : whole;
  return begin + work + checkpoints * costs.checkpoint;
}

absl::Status CheckTraining(const TrainingEntries& entries) {
  std::set<std::string> names;
  for (int i = 0; i < entries.size(); ++i) {
    const std::string path = absl::StrCat("training[", i, "]");
    const Duration interval = DurationFrom(entries[i].checkpoint_interval());
    if (entries[i].has_checkpoint_interval() && interval < kLeastInterval) {
      return absl::InvalidArgumentError(absl::StrCat(path, ".checkpoint_interval: below 1s"));
    }
    if (names.insert(entries[i].name()).second) continue;
    return absl::InvalidArgumentError(absl::StrCat(path, ".name: is repeated"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TrainingCosts>> CostsOf(const TrainingEntries& entries,
                                                   Duration interval, const Workload& workload) {
  std::vector<TrainingCosts> costs;
  costs.reserve(workload.jobs.size());
  for (const TraceJob& job : workload.jobs) {
    const auto entry = EntryOf(entries, job);
    if (!entry.ok()) return entry.status();
    costs.push_back(CostsOfOne(*entry, interval, job));
  }
  return costs;
}

}  // namespace berth::replay
