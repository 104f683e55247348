// Hangs and pauses: events, and the parts of a job's status.
#include "core/base/fields.h"
#include "storage/codec_common.h"

namespace berth::codec {

// Whoever adds a field encodes and decodes it below, and then changes the number.
static_assert(kFields<Pause> == 7);
static_assert(kFields<TaskHung> == 5);
static_assert(kFields<TasksPaused> == 5);
static_assert(kFields<TasksResumed> == 3);

void SetPause(const Pause& pause, pb::Pause* out) {
  out->set_wanted(pause.wanted);
  if (pause.since != absl::InfinitePast()) SetTime(pause.since, out->mutable_since());
  if (pause.until != absl::InfiniteFuture()) SetTime(pause.until, out->mutable_until());
  if (pause.total != absl::ZeroDuration()) SetDuration(pause.total, out->mutable_total());
  if (pause.resumed != absl::InfinitePast()) SetTime(pause.resumed, out->mutable_resumed());
  out->set_beneficiary(pause.beneficiary.value);
  out->set_detail(pause.detail);
}

Pause GetPause(const pb::Pause& m, Reader& reader) {
  Pause pause{
      .wanted = m.wanted(),
      .since = reader.GetTime(m.has_since(), m.since(), absl::InfinitePast(), "paused since"),
      .until = reader.GetTime(m.has_until(), m.until(), absl::InfiniteFuture(), "paused until"),
      .total = reader.GetDuration(m.has_total(), m.total(), absl::ZeroDuration(), "paused for"),
      .resumed = reader.GetTime(m.has_resumed(), m.resumed(), absl::InfinitePast(), "resumed"),
      .beneficiary = JobId{m.beneficiary()},
      .detail = m.detail()};
  if (pause.total < absl::ZeroDuration()) reader.Refuse("a pause below 0");
  return pause;
}

void SetTaskHung(const TaskHung& event, pb::TaskHung* out) {
  out->set_job(event.task.job.value);
  out->set_task(event.task.task);
  out->set_attempt(event.attempt);
  SetDuration(event.still, out->mutable_still());
  out->set_step(event.step);
  out->set_over(event.over);
}

TaskHung GetTaskHung(const pb::TaskHung& m, Reader& reader) {
  return {.task = {.job = JobId{m.job()}, .task = m.task()},
          .attempt = m.attempt(),
          .still = reader.GetDuration(m.has_still(), m.still(), absl::ZeroDuration(), "still"),
          .step = m.step(),
          .over = m.over()};
}

void SetTasksPaused(const TasksPaused& event, pb::TasksPaused* out) {
  out->set_job(event.job.value);
  out->mutable_tasks()->Add(event.tasks.begin(), event.tasks.end());
  if (event.until != absl::InfiniteFuture()) SetTime(event.until, out->mutable_until());
  out->set_beneficiary(event.beneficiary.value);
  out->set_detail(event.detail);
}

TasksPaused GetTasksPaused(const pb::TasksPaused& m, Reader& reader) {
  return {.job = JobId{m.job()},
          .tasks = {m.tasks().begin(), m.tasks().end()},
          .until = reader.GetTime(m.has_until(), m.until(), absl::InfiniteFuture(), "paused until"),
          .beneficiary = JobId{m.beneficiary()},
          .detail = m.detail()};
}

void SetTasksResumed(const TasksResumed& event, pb::TasksResumed* out) {
  out->set_job(event.job.value);
  out->mutable_tasks()->Add(event.tasks.begin(), event.tasks.end());
  out->set_waits(event.waits);
}

TasksResumed GetTasksResumed(const pb::TasksResumed& m) {
  return {.job = JobId{m.job()}, .tasks = {m.tasks().begin(), m.tasks().end()}, .waits = m.waits()};
}

}  // namespace berth::codec
