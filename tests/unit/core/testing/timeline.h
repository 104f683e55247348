// A cluster in simulated time, with backfill: jobs start when they are bound and end exactly at
// their walltime.
//
//   Timeline line;
//   line.cluster.AddNode("n", {.gpus = 8});
//   JobId job = line.cluster.Submit("j", ...);
//   line.To(60);                         // minutes from the start
//   CHECK(line.StartOf(job) == 0);
#ifndef BERTH_TESTS_UNIT_CORE_TESTING_TIMELINE_H_
#define BERTH_TESTS_UNIT_CORE_TESTING_TIMELINE_H_

#include <vector>

#include "tests/unit/core/testing/cluster.h"

namespace berth::testing {

inline Policies WithBackfill(BackfillParameters parameters = {}) {
  PolicyConfig config;
  config.actions = {"allocate", "backfill"};
  config.backfill = parameters;
  return *Policies::Create(config);
}

class Timeline {
 public:
  explicit Timeline(BackfillParameters parameters = {})
      : cluster(WithBackfill(parameters)), zero_(cluster.now()) {}

  // Jobs start when they are bound, and jobs whose walltime is over exit.
  void To(int minute) {
    const Time until = zero_ + absl::Minutes(minute);
    for (;;) {
      StartAll();
      const auto& ends = cluster.state().planned_ends();
      if (ends.empty() || ends.begin()->first > until) break;
      EndAllBy(ends.begin()->first);
    }
    cluster.Advance(until - cluster.now());
    StartAll();
  }
  void StartAll() {
    cluster.Settle();
    std::vector<JobId> binding;
    cluster.state().jobs().ForEach([&](JobId id, const Job& job) {
      if (job.status.state == JobState::kBinding) binding.push_back(id);
    });
    for (JobId id : binding) cluster.RunAll(id);
  }
  // Minutes of its reservation; -1 if it has none.
  int64_t ReservedAt(JobId id) const {
    const auto found = cluster.state().reservations().find(id);
    if (found == cluster.state().reservations().end()) return -1;
    return absl::ToInt64Minutes(found->second.start - zero_);
  }
  int64_t StartOf(JobId id) const {
    const Time start = cluster.status(id).bound;
    return start == absl::InfinitePast() ? -1 : absl::ToInt64Minutes(start - zero_);
  }
  Time At(int minute) const { return zero_ + absl::Minutes(minute); }

  TestCluster cluster;

 private:
  void EndAllBy(Time time) {
    // Reported just before planning reads the clock, so that it is not stopped for its walltime.
    std::vector<JobId> ending;
    for (const auto& [end, id] : cluster.state().planned_ends()) {
      if (end <= time) ending.push_back(id);
    }
    cluster.PassTo(time);
    for (JobId id : ending) {
      for (uint32_t i = 0; i < cluster.job(id).tasks.size(); ++i) {
        if (Occupies(cluster.job(id).tasks[i].state)) cluster.Report(id, i, ReportState::kExited);
      }
    }
  }
  Time zero_;
};

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_CORE_TESTING_TIMELINE_H_
