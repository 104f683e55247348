#include "offline/replay/job_template.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "offline/sim/specs.h"
#include "server/convert/topology.h"
#include "server/convert/values.h"

namespace berth::replay {

absl::StatusOr<JobTemplate> ToJobTemplate(const sim::v1::Scenario& scenario) {
  JobTemplate result;
  if (scenario.jobs().empty()) return result;
  if (scenario.jobs_size() > 1) {
    return absl::InvalidArgumentError("jobs[1]: only one job is allowed: how all are submitted");
  }
  const sim::v1::Job& job = scenario.jobs(0);
  sim::v1::Job rest = job;
  rest.clear_name();
  rest.clear_strategy();
  rest.clear_topology();
  rest.clear_min_available();
  rest.clear_preemptible();
  rest.clear_checkpoint_interval();
  std::vector<const google::protobuf::FieldDescriptor*> others;
  rest.GetReflection()->ListFields(rest, &others);
  if (!others.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("jobs[0].", others[0]->name(),
                     ": is set by the workload; strategy, topology, min_available, preemptible and "
                     "checkpoint_interval are allowed"));
  }
  if (job.min_available() < 0) {
    return absl::InvalidArgumentError("jobs[0].min_available: below 0");
  }
  if (job.has_checkpoint_interval()) {
    result.checkpoint_interval = DurationFrom(job.checkpoint_interval());
    if (result.checkpoint_interval < absl::Seconds(1)) {
      return absl::InvalidArgumentError("jobs[0].checkpoint_interval: below 1s");
    }
  }
  result.preemptible = job.preemptible();
  result.strategy = StrategyFrom(job.strategy());
  if (job.has_topology()) result.topology = TopologyFrom(job.topology());
  result.min_available = job.min_available();
  return result;
}

}  // namespace berth::replay
