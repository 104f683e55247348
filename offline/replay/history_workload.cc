#include "offline/replay/history_workload.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "berth/v1/job.pb.h"
#include "server/convert/job.h"
#include "support/proto_time.h"

namespace berth::replay {
namespace {

Duration SinceEpoch(const google::protobuf::Timestamp& time) {
  return TimeFrom(time) - absl::UnixEpoch();
}

// How it ended; nullopt: not yet.
std::optional<TraceEnd> EndOf(v1::JobState state) {
  if (state == v1::JOB_SUCCEEDED) return TraceEnd::kCompleted;
  if (state == v1::JOB_FAILED) return TraceEnd::kFailed;
  if (state == v1::JOB_CANCELLED) return TraceEnd::kCancelled;
  return std::nullopt;
}

// The parts of the specification that hold for a replay.
JobSpec ReplayedSpec(const v1::JobSpec& from) {
  JobSpec spec = JobSpecFrom(from, {});
  spec.min_available = 0;
  for (GroupSpec& group : spec.groups) {
    group.min_available = group.replicas;
    group.policies.clear();
    group.depends_on.clear();
    spec.min_available += group.replicas;
  }
  spec.policies.clear();
  spec.max_retries = 0;
  spec.suspended = false;
  spec.on_node_loss = NodeLossPolicy::kFence;
  return spec;
}

TraceJob JobFrom(const v1::Job& from, TraceEnd end) {
  auto spec = std::make_shared<JobSpec>(ReplayedSpec(from.spec()));
  TraceJob job;
  job.name = from.name();
  job.submit = SinceEpoch(from.status().submit_time());
  job.run = SinceEpoch(from.status().end_time()) - SinceEpoch(from.status().start_time());
  job.requested = spec->walltime;
  CapAtRequestedTime(&job);
  job.tasks = spec->groups.front().replicas;
  job.shape = spec->groups.front().shape;
  for (size_t i = 1; i < spec->groups.size(); ++i) {
    const GroupSpec& group = spec->groups[i];
    job.more.push_back({.name = group.name, .tasks = group.replicas, .shape = group.shape});
  }
  job.user = spec->user;
  job.queue = from.spec().queue();
  job.priority = spec->priority;
  job.preemptible = spec->preemptible;
  job.ended = end;
  job.spec = std::move(spec);
  return job;
}

absl::Status Take(absl::string_view line, Workload* workload) {
  v1::Job job;
  const auto parsed = google::protobuf::util::JsonStringToMessage(std::string(line), &job);
  if (!parsed.ok()) return absl::InvalidArgumentError(std::string(parsed.message()));
  const std::optional<TraceEnd> end = EndOf(job.status().state());
  if (!end.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(job.name(), " has not ended"));
  }
  if (job.spec().groups().empty() || !job.status().has_submit_time()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", job.name(), "\": no groups or no submit"));
  }
  if (!job.status().has_start_time() || !job.status().has_end_time()) {
    ++workload->left_out["never ran"];
    return absl::OkStatus();
  }
  TraceJob traced = JobFrom(job, *end);
  if (traced.run <= absl::ZeroDuration()) {
    ++workload->left_out["no run time"];
    return absl::OkStatus();
  }
  workload->jobs.push_back(std::move(traced));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Workload> ReadHistory(absl::string_view text, const std::string& file) {
  Workload workload;
  int64_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    if (const absl::Status status = Take(line, &workload); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(file, ":", number, ": ", status.message()));
    }
  }
  SortBySubmit(&workload);
  return workload;
}

}  // namespace berth::replay
