#include "server/history/ended_job.h"

#include "server/convert/job.h"
#include "server/convert/queue.h"
#include "server/convert/values.h"
#include "server/history/resource_time.h"

namespace berth {
namespace {

void SetTimeIfAny(Time time, google::protobuf::Timestamp* out) {
  if (time != absl::InfinitePast()) ToProto(time, out);
}

// What a task of the shape requests, with shares and devices as counts.
void SetRequest(const TaskShape& shape, v1::ResourceList* out) {
  std::vector<NamedAmount> amounts = shape.extended;
  if (shape.cpu_millis > 0) amounts.push_back({"cpu", shape.cpu_millis});
  if (shape.memory_bytes > 0) amounts.push_back({"memory", shape.memory_bytes});
  for (const DeviceRequest& device : shape.devices) {
    amounts.push_back({device.kind, device.share > 0 ? device.share : device.count * kWhole});
  }
  ToProto(SortedByName(std::move(amounts)), out);
}

}  // namespace

std::string QueueNameIn(absl::string_view path) {
  if (path.empty()) return std::string(kRootQueueName);
  const size_t slash = path.rfind('/');
  return std::string(slash == absl::string_view::npos ? path : path.substr(slash + 1));
}

v1::EndedJob EndedJobOf(const EndedJobFacts& job, const JobSpec& spec) {
  v1::EndedJob ended;
  ended.set_uid(job.id.value);
  ended.set_name(spec.name);
  ended.set_queue(QueueNameIn(job.key.queue));
  ended.set_queue_path(job.key.queue);
  ended.set_user(spec.user);
  ended.set_owner(spec.owner);
  ended.set_account(job.key.account);
  ended.set_priority_class(spec.priority_class);
  ToProto(spec.labels, ended.mutable_labels());
  ended.set_state(JobStateToApi(job.status.state));
  ended.set_message(job.status.message);
  ended.set_exit_code(job.life.exit_code);
  ended.set_exit_signal(job.life.exit_signal);
  SetTimeIfAny(job.submit, ended.mutable_submit_time());
  if (job.life.first_start != absl::InfinitePast()) {
    SetTimeIfAny(job.life.first_start, ended.mutable_first_start_time());
    SetTimeIfAny(job.status.start, ended.mutable_last_start_time());
  }
  SetTimeIfAny(job.status.end, ended.mutable_end_time());
  ended.set_start_count(job.life.starts);
  ended.set_retries(job.status.retries);
  ended.set_evictions(job.life.evictions);
  const auto figure = [](Measure measure) { return static_cast<size_t>(measure); };
  SetResourceTimes(job.meters, figure(Measure::kHeld), ended.mutable_held());
  SetResourceTimes(job.meters, figure(Measure::kPaused), ended.mutable_paused());
  SetResourceTimes(job.meters, figure(Measure::kPreempted), ended.mutable_lost_to_preemption());
  SetResourceTimes(job.meters, figure(Measure::kFaulted), ended.mutable_lost_to_faults());
  if (spec.member) ended.set_series_uid(spec.member->series.value);
  ended.set_is_series(static_cast<bool>(spec.series));
  int32_t tasks = 0;
  for (const GroupSpec& group : spec.groups) {
    v1::EndedGroup& out = *ended.add_groups();
    out.set_name(group.name);
    out.set_replicas(group.replicas);
    SetRequest(group.shape, out.mutable_request());
    tasks += group.replicas;
  }
  ended.set_tasks(spec.series ? 0 : tasks);
  return ended;
}

}  // namespace berth
