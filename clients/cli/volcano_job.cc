#include "clients/cli/volcano_job.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cli/kubernetes_pod.h"
#include "clients/cli/volcano.h"
#include "clients/cli/volcano_plugins.h"
#include "clients/cli/volcano_policies.h"

namespace berth {
namespace {

constexpr int kVolcanoMaxRetry = 3;  // Volcano's default

class VolcanoJobConverter {
 public:
  VolcanoJobConverter(const std::string& path, const volcano::v1::JobSpec& in,
                      const std::string& space, ForeignJob& job)
      : path_(path),
        in_(in),
        space_(space),
        job_(job),
        document_(job.document()),
        spec_(job.spec()) {}

  void Convert() {
    SetRayCommands(path_, job_.manifest().job.name(), &in_, &document_);
    ConvertSpec();
    ConvertVolcanoPolicies(path_ + ".policies", in_.policies(), &document_,
                           spec_.mutable_policies());
    const std::string queue = spec_.queue();
    for (int i = 0; i < in_.tasks_size(); ++i) ConvertTask(i);
    // The job's queue and class rather than those of a pod.
    spec_.set_queue(queue);
    job_.ConvertPriorityClass(path_ + ".priority_class_name", in_.priority_class_name());
    ConvertPlugins(path_, in_, space_, &job_);
    if (in_.tasks_size() == 0) document_.Missing(path_, "spec.tasks");
  }

 private:
  void ConvertSpec() {
    const std::string& scheduler = in_.scheduler_name();
    if (!scheduler.empty() && scheduler != "volcano" && scheduler != "berth") {
      document_.Error(path_ + ".scheduler_name",
                      absl::StrCat("schedulerName \"", scheduler, "\" is not volcano or berth"));
    }
    if (!in_.queue().empty()) {
      spec_.set_queue(in_.queue());
      job_.Place("spec.queue", path_ + ".queue");
    }
    spec_.set_min_available(in_.min_available());
    job_.Place("spec.min_available", path_ + ".min_available");
    if (in_.has_min_success()) spec_.set_min_success(in_.min_success());
    job_.Place("spec.min_success", path_ + ".min_success");
    spec_.set_max_retries(in_.has_max_retry() ? in_.max_retry() : kVolcanoMaxRetry);
    job_.Place("spec.max_retries", path_ + ".max_retry");
    if (in_.has_ttl_seconds_after_finished()) {
      job_.ConvertTimeToLive(path_ + ".ttl_seconds_after_finished",
                             in_.ttl_seconds_after_finished());
    }
    if (in_.has_network_topology()) {
      ConvertVolcanoTopology(path_ + ".network_topology", "spec.topology", in_.network_topology(),
                             &job_, spec_.mutable_topology());
    }
    job_.Place("spec.groups", path_ + ".tasks");
  }

  void ConvertTask(int index) {
    const volcano::v1::Task& task = in_.tasks(index);
    const std::string from = absl::StrCat(path_, ".tasks[", index, "]");
    const std::string to = absl::StrCat("spec.groups[", index, "]");
    v1::TaskGroup& group = *spec_.add_groups();
    group.set_name(task.name().empty() ? absl::StrCat("default", index) : task.name());
    group.set_replicas(task.has_replicas() ? task.replicas() : 1);
    if (task.has_min_available()) group.set_min_available(task.min_available());
    job_.Place(to, from);
    for (const char* key : {".name", ".replicas", ".min_available", ".policies", ".depends_on"}) {
      job_.Place(to + key, from + key);
    }
    ConvertVolcanoPolicies(from + ".policies", task.policies(), &document_,
                           group.mutable_policies());
    if (task.has_partition_policy())
      ConvertPartitions(from + ".partition_policy", to, task.partition_policy(), &group);
    ConvertDependsOn(from + ".depends_on", task.depends_on(), &group);
    ConvertPodTemplate(from + ".template", task.template_(), Surroundings(index), to, &job_,
                       &group);
    ConvertRestartPolicy(from + ".template.spec.restart_policy", task, &group);
  }

  // The plugin env sets the index of the task; without it, only commands may have it.
  PodSurroundings Surroundings(int task) {
    PodSurroundings known;
    const bool has_plugin = document_.Has(path_ + ".plugins.env");
    for (const char* name : {"VC_TASK_INDEX", "VK_TASK_INDEX"}) {
      known.in_commands[name] = "${BERTH_GROUP_INDEX}";
      if (has_plugin) known.variables[name] = "${BERTH_GROUP_INDEX}";
      if (!has_plugin) known.replaced[name] = "BERTH_GROUP_INDEX";
    }
    if (document_.Has(path_ + ".plugins.tensorflow")) {
      const std::string config = TensorFlowConfig(in_, job_.manifest().job.name(), task);
      if (!config.empty()) known.variables["TF_CONFIG"] = config;
    }
    for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"})
      known.in_commands[name] = absl::StrCat("${", name, "}");
    return known;
  }

  // Kubernetes restarts the container in place, by default also one that ended without an error.
  void ConvertRestartPolicy(const std::string& path, const volcano::v1::Task& task,
                            v1::TaskGroup* group) {
    const std::string& policy = task.template_().spec().restart_policy();
    if (policy == "Never") return;
    if (policy == "Always") {
      document_.Warn(path,
                     "restartPolicy Always: a task that exits with 0 has succeeded, and is "
                     "not started again");
    } else if (!policy.empty() && policy != "OnFailure") {
      return document_.Error(
          path, absl::StrCat("restartPolicy \"", policy, "\" is not Always, OnFailure or Never"));
    }
    const bool handled = HandlesFailures(in_.policies()) || HandlesFailures(task.policies());
    if (policy.empty() && handled) return;
    ForeignJob::AddRestart(v1::LifecyclePolicy::RESTART_TASK, group->mutable_policies());
  }

  void ConvertPartitions(const std::string& from, const std::string& to,
                         const volcano::v1::PartitionPolicy& policy, v1::TaskGroup* group) {
    const int64_t tasks = int64_t{policy.total_partitions()} * policy.partition_size();
    if (tasks != group->replicas()) {
      document_.Error(from, absl::StrCat("totalPartitions times partitionSize must be replicas, ",
                                         group->replicas(), ", not ", tasks));
    }
    group->mutable_partition()->set_size(policy.partition_size());
    group->mutable_partition()->set_min_partitions(policy.min_partitions());
    job_.Place(to + ".partition", from);
    job_.Place(to + ".partition.size", from + ".partition_size");
    job_.Place(to + ".partition.min_partitions", from + ".min_partitions");
    if (policy.has_network_topology()) {
      ConvertVolcanoTopology(from + ".network_topology", to + ".partition.topology",
                             policy.network_topology(), &job_,
                             group->mutable_partition()->mutable_topology());
    }
  }

  void ConvertDependsOn(const std::string& path, const volcano::v1::DependsOn& depends_on,
                        v1::TaskGroup* group) {
    const std::string& iteration = depends_on.iteration();
    if (iteration != "all" && depends_on.name_size() > 1)
      document_.Error(path, "dependsOn of several tasks needs \"iteration: all\"");
    if (!iteration.empty() && iteration != "any" && iteration != "all") {
      document_.Error(path + ".iteration",
                      absl::StrCat("iteration \"", iteration, "\" is not any or all"));
    }
    for (const std::string& name : depends_on.name()) {
      v1::GroupDependency& dependency = *group->add_depends_on();
      dependency.set_group(name);
      dependency.set_condition(v1::GroupDependency::RUNNING);
    }
  }

  const std::string& path_;
  volcano::v1::JobSpec in_;
  const std::string& space_;
  ForeignJob& job_;
  ForeignDocument& document_;
  v1::JobSpec& spec_;
};

}  // namespace

void ConvertVolcanoJobSpec(const std::string& path, const volcano::v1::JobSpec& spec,
                           const std::string& space, ForeignJob* job) {
  VolcanoJobConverter(path, spec, space, *job).Convert();
}

void ConvertVolcanoTopology(const std::string& path, const std::string& berth_path,
                            const volcano::v1::NetworkTopology& in, ForeignJob* job,
                            v1::TopologyConstraint* out) {
  if (in.mode().empty() || in.mode() == "hard") {
    out->set_mode(v1::TopologyConstraint::HARD);
  } else if (in.mode() == "soft") {
    out->set_mode(v1::TopologyConstraint::SOFT);
  } else {
    job->document().Error(path + ".mode",
                          absl::StrCat("mode \"", in.mode(), "\" is not hard or soft"));
  }
  if (in.has_highest_tier_allowed()) out->set_highest_tier(BerthTier(in.highest_tier_allowed()));
  out->set_highest_tier_name(in.highest_tier_name());
  job->Place(berth_path, path);
  job->Place(berth_path + ".mode", path + ".mode");
  job->Place(berth_path + ".highest_tier", path + ".highest_tier_allowed");
  job->Place(berth_path + ".highest_tier_name", path + ".highest_tier_name");
}

void ReadVolcanoJob(const YamlNode& node, ForeignFile* file) {
  ForeignDocument document(node, *file);
  volcano::v1::Job in;
  document.Read(&in);
  ForeignJob job(document);
  job.ConvertMetadata("metadata", in.metadata());
  ConvertVolcanoJobSpec("spec", in.spec(), in.metadata().namespace_(), &job);
  job.Finish();
}

}  // namespace berth
