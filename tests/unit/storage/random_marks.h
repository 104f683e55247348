// Reports, pauses, runs and priority classes, for RandomValues and RandomCluster.
#ifndef BERTH_TESTS_UNIT_STORAGE_RANDOM_MARKS_H_
#define BERTH_TESTS_UNIT_STORAGE_RANDOM_MARKS_H_

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/model/event.h"
#include "core/model/job.h"
#include "core/model/priority_classes.h"

namespace berth {

template <class Values>
Pause RandomPause(Values& v) {
  if (v.Coin()) return {};
  return {.wanted = v.Coin(),
          .since = v.AnyTime(),
          .until = v.AnyTime(),
          .total = absl::Milliseconds(v.Count(1 << 30)),
          .resumed = v.AnyTime(),
          .beneficiary = JobId{v.Uint64()},
          .detail = v.Text()};
}

template <class Random>
TasksPaused RandomTasksPaused(Random& random, JobId job, uint32_t task, Time now) {
  const JobId other{random.Coin() ? random.Below(20) + 1 : 0};
  return {.job = job,
          .tasks = {task},
          .until = now + absl::Minutes(random.Below(60)),
          .beneficiary = other,
          .detail = other == JobId{} ? "" : "its priority is low"};
}

template <class Values>
PriorityClassChange RandomPriorityClasses(Values& v) {
  return {.remove = v.Texts(), .set = v.List([&v] {
            return PriorityClass{.name = v.Text(),
                                 .value = v.Int32(),
                                 .preempts = v.Coin(),
                                 .global_default = v.Coin(),
                                 .description = v.Text()};
          })};
}

// Of a few names; some are refused: a second global default, or none to remove.
template <class Values>
PriorityClassesChanged SomePriorityClasses(Values& v) {
  const std::string name = absl::StrCat("c", v.Below(4));
  PriorityClassChange change;
  if (v.Below(3) == 0) {
    change.remove = {name};
  } else {
    change.set = {{.name = name,
                   .value = v.Count(1000),
                   .preempts = v.Coin(),
                   .global_default = v.Below(4) == 0,
                   .description = "for tests"}};
  }
  return {std::move(change)};
}

template <class Values>
TaskReported RandomReport(Values& v, JobId job) {
  return {.task = {job, v.Uint32()},
          .attempt = v.Uint32(),
          .state = v.Any(ReportState::kPaused),
          .exit_code = v.Int32(),
          .exit_signal = static_cast<uint8_t>(v.Uint32()),
          .cause = v.Any(ExitCause::kDevice),
          .port = static_cast<uint16_t>(v.Uint32()),
          .message = v.Text(),
          .own_fault = v.Coin(),
          .nobodys_fault = v.Coin(),
          .trust_at_running = v.Coin(),
          .devices_lent = v.Coin()};
}

template <class Values>
FinishedRun RandomRun(Values& v) {
  return {.user = v.Text(),
          .request = {.walltime_s = v.Int64(), .devices = v.Int64(), .cpu_millis = v.Int64()},
          .run_ms = v.Int64()};
}

}  // namespace berth

#endif  // BERTH_TESTS_UNIT_STORAGE_RANDOM_MARKS_H_
