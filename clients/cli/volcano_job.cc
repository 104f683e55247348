#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "berth/volcano/v1/manifests.pb.h"
#include "clients/cli/manifest_hints.h"
#include "clients/cli/volcano.h"
#include "support/nearest.h"

namespace berth {
namespace {

constexpr int kVolcanoMaxRetry = 3;  // Volcano's default
constexpr char kPreemptable[] = "volcano.sh/preemptable";

using Quantities = google::protobuf::Map<std::string, std::string>;
using Policies = google::protobuf::RepeatedPtrField<volcano::v1::Policy>;
using BerthPolicies = google::protobuf::RepeatedPtrField<v1::LifecyclePolicy>;

// Of variables.
constexpr char kNameChars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

struct EventName {
  const char* volcano;
  v1::LifecyclePolicy::Event berth;
};
constexpr EventName kEvents[] = {
    {"*", v1::LifecyclePolicy::ANY},
    {"PodFailed", v1::LifecyclePolicy::TASK_FAILED},
    {"TaskFailed", v1::LifecyclePolicy::TASK_FAILED},
    {"PodEvicted", v1::LifecyclePolicy::TASK_EVICTED},
    {"PodPending", v1::LifecyclePolicy::TASK_PENDING},
    {"TaskCompleted", v1::LifecyclePolicy::TASK_COMPLETED},
};

// Volcano's "task" is Berth's group, its "pod" Berth's task.
struct ActionName {
  const char* volcano;
  v1::LifecyclePolicy::Action berth;
};
constexpr ActionName kActions[] = {
    {"AbortJob", v1::LifecyclePolicy::ABORT},
    {"TerminateJob", v1::LifecyclePolicy::ABORT},
    {"CompleteJob", v1::LifecyclePolicy::COMPLETE},
    {"RestartJob", v1::LifecyclePolicy::RESTART_JOB},
    {"RestartTask", v1::LifecyclePolicy::RESTART_GROUP},
    {"RestartPod", v1::LifecyclePolicy::RESTART_TASK},
    {"RestartPartition", v1::LifecyclePolicy::RESTART_PARTITION},
};

struct PluginMeaning {
  const char* name;
  const char* text;
};
constexpr PluginMeaning kPlugins[] = {
    {"env", "env: VC_TASK_INDEX of commands becomes BERTH_GROUP_INDEX, which each task has"},
    {"svc", "svc: the hosts of all tasks are in the file BERTH_HOSTFILE of each task"},
    {"ssh", "ssh: there are no keys; see \"MPI without ssh\" in Berth's examples"},
    {"mpi", "mpi: the hosts are in BERTH_HOSTFILE; see \"MPI without ssh\" in Berth's examples"},
    {"pytorch", "pytorch: MASTER_ADDR and MASTER_PORT are those of rank 0, whatever it says"},
};

// What plugins give to tasks of Volcano, and nobody gives here: a name of a variable, or a part of
// a path. "" if the text has none.
std::string PluginsGift(absl::string_view text) {
  constexpr absl::string_view kDirectory = "/etc/volcano/";
  if (absl::StrContains(text, kDirectory)) return std::string(kDirectory);
  for (size_t end = 0; end < text.size();) {
    const size_t begin = std::min(text.find_first_of(kNameChars, end), text.size());
    end = std::min(text.find_first_not_of(kNameChars, begin), text.size());
    const absl::string_view name = text.substr(begin, end - begin);
    const bool of_svc = absl::StartsWith(name, "VC_") &&
                        (absl::EndsWith(name, "_HOSTS") || absl::EndsWith(name, "_NUM"));
    if (of_svc || name == "MPI_HOST" || name == "TF_CONFIG") return std::string(name);
  }
  return "";
}

template <class Entry, size_t n>
const Entry* FindName(const Entry (&entries)[n], const std::string& name) {
  const auto* found =
      std::find_if(entries, entries + n, [&](const Entry& e) { return e.volcano == name; });
  return found == entries + n ? nullptr : found;
}

template <class Entry, size_t n>
std::vector<std::string> EntryNames(const Entry (&entries)[n]) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.emplace_back(entry.volcano);
  return names;
}

bool StartsName(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_'; }

// Kubernetes replaces $(NAME) and takes $$ for $; Berth replaces $NAME and ${NAME}, and takes
// $$NAME for $NAME. What is plain text to Kubernetes stays plain text.
std::string WithBerthVariables(absl::string_view original) {
  const std::string renamed = absl::StrReplaceAll(
      original, {{"VC_TASK_INDEX", "BERTH_GROUP_INDEX"}, {"VK_TASK_INDEX", "BERTH_GROUP_INDEX"}});
  absl::string_view text = renamed;
  std::string out;
  while (!text.empty()) {
    const size_t end = absl::StartsWith(text, "$(") ? text.find_first_not_of(kNameChars, 2)
                                                    : absl::string_view::npos;
    if (end != absl::string_view::npos && end > 2 && text[end] == ')') {
      absl::StrAppend(&out, "${", text.substr(2, end - 2), "}");
      text.remove_prefix(end + 1);
      continue;
    }
    if (absl::StartsWith(text, "$$")) text.remove_prefix(1);
    const bool reads_as_name =
        text.size() > 1 && text[0] == '$' && (StartsName(text[1]) || text[1] == '{');
    absl::StrAppend(&out, reads_as_name ? "$" : "", text.substr(0, 1));
    text.remove_prefix(1);
  }
  return out;
}

class JobConverter {
 public:
  JobConverter(const volcano::v1::Job& in, const YamlPositions& source, YamlErrors* errors,
               YamlErrors* warnings, Manifest* out)
      : in_(in),
        source_(source),
        errors_(*errors),
        warnings_(*warnings),
        out_(*out),
        spec_(*out->job.mutable_spec()) {}

  void Convert() {
    ConvertMetadata();
    ConvertSpec();
    ConvertPolicies("policies", in_.spec().policies(), spec_.mutable_policies());
    for (int i = 0; i < in_.spec().tasks_size(); ++i) ConvertTask(i);
    ConvertPlugins();
    if (in_.spec().tasks_size() == 0) Error("spec", "\"spec.tasks\" is missing");
  }

 private:
  void Error(const std::string& path, const std::string& text) {
    errors_.Add(FindPosition(source_, path, out_.position), text);
  }
  void Warn(const std::string& path, const std::string& text) {
    warnings_.Add(FindPosition(source_, path, out_.position), text);
  }
  // Errors of the server at one path are reported at the other.
  void Place(const std::string& berth_path, const std::string& volcano_path) {
    out_.positions[berth_path] = FindPosition(source_, volcano_path, out_.position);
  }

  void ConvertMetadata() {
    const volcano::v1::Metadata& metadata = in_.metadata();
    out_.job.set_name(metadata.name());
    Place("name", "metadata.name");
    spec_.mutable_labels()->insert(metadata.labels().begin(), metadata.labels().end());
    spec_.mutable_annotations()->insert(metadata.annotations().begin(),
                                        metadata.annotations().end());
    Place("spec.labels", "metadata.labels");
    Place("spec.annotations", "metadata.annotations");
    ConvertPreemptable("labels", metadata.labels());
    ConvertPreemptable("annotations", metadata.annotations());
    if (!metadata.namespace_().empty() && metadata.namespace_() != "default") {
      Error("metadata.namespace", "Berth has no namespaces: remove it, or use a separate queue");
    }
  }

  // Set by an annotation, in older manifests by a label.
  void ConvertPreemptable(const std::string& where,
                          const google::protobuf::Map<std::string, std::string>& map) {
    const auto found = map.find(kPreemptable);
    if (found == map.end()) return;
    const std::string path = absl::StrCat("metadata.", where, "[\"", kPreemptable, "\"]");
    if (found->second != "true" && found->second != "false") {
      return Error(path, absl::StrCat(kPreemptable, " must be \"true\" or \"false\", not \"",
                                      found->second, "\""));
    }
    spec_.set_preemptible(found->second == "true");
    Place("spec.preemptible", path);
  }

  void ConvertPriority(const std::string& name) {
    if (name.empty()) return;
    int32_t priority = 0;
    if (!absl::SimpleAtoi(name, &priority)) {
      spec_.set_priority_class(name);
      return Place("spec.priority_class", "spec.priority_class_name");
    }
    spec_.set_priority(priority);
    Place("spec.priority", "spec.priority_class_name");
  }

  void ConvertPartitions(const std::string& from, const std::string& to,
                         const volcano::v1::PartitionPolicy& policy, v1::TaskGroup* group) {
    const int64_t tasks = int64_t{policy.total_partitions()} * policy.partition_size();
    if (tasks != group->replicas()) {
      Error(from, absl::StrCat("totalPartitions times partitionSize must be replicas, ",
                               group->replicas(), ", not ", tasks));
    }
    group->mutable_partition()->set_size(policy.partition_size());
    group->mutable_partition()->set_min_partitions(policy.min_partitions());
    Place(to + ".partition", from);
    Place(to + ".partition.size", from + ".partition_size");
    Place(to + ".partition.min_partitions", from + ".min_partitions");
    if (policy.has_network_topology()) {
      ConvertTopology(from + ".network_topology", to + ".partition.topology",
                      policy.network_topology(), group->mutable_partition()->mutable_topology());
    }
  }

  void ConvertTopology(const std::string& from, const std::string& to,
                       const volcano::v1::NetworkTopology& in, v1::TopologyConstraint* out) {
    if (in.mode().empty() || in.mode() == "hard") {
      out->set_mode(v1::TopologyConstraint::HARD);
    } else if (in.mode() == "soft") {
      out->set_mode(v1::TopologyConstraint::SOFT);
    } else {
      Error(from + ".mode", absl::StrCat("mode \"", in.mode(), "\" is not hard or soft"));
    }
    if (in.has_highest_tier_allowed()) {
      out->set_highest_tier(BerthTier(in.highest_tier_allowed()));
    }
    out->set_highest_tier_name(in.highest_tier_name());
    Place(to, from);
    Place(to + ".mode", from + ".mode");
    Place(to + ".highest_tier", from + ".highest_tier_allowed");
    Place(to + ".highest_tier_name", from + ".highest_tier_name");
  }

  void ConvertSpec() {
    const volcano::v1::JobSpec& spec = in_.spec();
    const std::string& scheduler = spec.scheduler_name();
    if (!scheduler.empty() && scheduler != "volcano" && scheduler != "berth") {
      Error("spec.scheduler_name",
            absl::StrCat("schedulerName \"", scheduler, "\" is not volcano or berth"));
    }
    spec_.set_queue(spec.queue().empty() ? "default" : spec.queue());
    Place("spec.queue", "spec.queue");
    spec_.set_min_available(spec.min_available());
    Place("spec.min_available", "spec.min_available");
    spec_.set_max_retries(spec.has_max_retry() ? spec.max_retry() : kVolcanoMaxRetry);
    Place("spec.max_retries", "spec.max_retry");
    if (spec.has_ttl_seconds_after_finished()) {
      spec_.mutable_ttl_after_finished()->set_seconds(spec.ttl_seconds_after_finished());
      Place("spec.ttl_after_finished", "spec.ttl_seconds_after_finished");
    }
    ConvertPriority(spec.priority_class_name());
    if (spec.has_network_topology()) {
      ConvertTopology("spec.network_topology", "spec.topology", spec.network_topology(),
                      spec_.mutable_topology());
    }
    Place("spec.groups", "spec.tasks");
  }

  // What the plugins would give, tasks have without them. What they cannot have is an error where
  // a command uses it.
  void ConvertPlugins() {
    const volcano::v1::JobSpec& spec = in_.spec();
    if (!spec.has_plugins()) return;
    const std::string path = "spec.plugins";
    const auto* plugins = spec.plugins().GetDescriptor();
    for (int i = 0; i < plugins->field_count(); ++i) {
      const std::string name(plugins->field(i)->name());
      if (source_.find(absl::StrCat(path, ".", name)) == source_.end()) continue;
      for (const PluginMeaning& known : kPlugins) {
        if (name == known.name) Warn(absl::StrCat(path, ".", name), known.text);
      }
    }
    for (int i = 0; i < spec.tasks_size(); ++i) {
      const auto& containers = spec.tasks(i).template_().spec().containers();
      for (int c = 0; c < containers.size(); ++c) {
        CheckUses(absl::StrCat("spec.tasks[", i, "].template.spec.containers[", c, "]"),
                  containers[c]);
      }
    }
  }

  void CheckUses(const std::string& path, const volcano::v1::Container& container) {
    const auto check = [&](const std::string& key, const std::string& text) {
      const std::string gift = PluginsGift(text);
      if (gift.empty()) return;
      Error(path + key, absl::StrCat("there is no ", gift,
                                     ": the hosts are in the file $BERTH_HOSTFILE, the ranks in "
                                     "RANK and WORLD_SIZE"));
    };
    for (const std::string& word : container.command()) check(".command", word);
    for (const std::string& word : container.args()) check(".args", word);
    for (const volcano::v1::EnvVar& variable : container.env()) check(".env", variable.value());
  }

  void ConvertTask(int index) {
    const volcano::v1::Task& task = in_.spec().tasks(index);
    const std::string from = absl::StrCat("spec.tasks[", index, "]");
    const std::string to = absl::StrCat("groups[", index, "]");
    v1::TaskGroup& group = *spec_.add_groups();
    group.set_name(task.name().empty() ? absl::StrCat("default", index) : task.name());
    group.set_replicas(task.has_replicas() ? task.replicas() : 1);
    if (task.has_min_available()) group.set_min_available(task.min_available());
    Place("spec." + to, from);
    for (const char* key : {".name", ".replicas", ".min_available", ".policies", ".depends_on"}) {
      Place(absl::StrCat("spec.", to, key), from + key);
    }
    ConvertPolicies(absl::StrCat("tasks[", index, "].policies"), task.policies(),
                    group.mutable_policies());
    if (task.has_partition_policy()) {
      ConvertPartitions(from + ".partition_policy", "spec." + to, task.partition_policy(), &group);
    }
    ConvertDependsOn(from + ".depends_on", task.depends_on(), &group);
    ConvertPod(from + ".template.spec", "spec." + to, task.template_().spec(), &group);
  }

  void ConvertDependsOn(const std::string& path, const volcano::v1::DependsOn& depends_on,
                        v1::TaskGroup* group) {
    const bool any = depends_on.iteration() != "all" && depends_on.name_size() > 1;
    if (any) Error(path, "dependsOn of several tasks needs \"iteration: all\"");
    const std::string& iteration = depends_on.iteration();
    if (!iteration.empty() && iteration != "any" && iteration != "all") {
      Error(path + ".iteration", absl::StrCat("iteration \"", iteration, "\" is not any or all"));
    }
    for (const std::string& name : depends_on.name()) {
      v1::GroupDependency& dependency = *group->add_depends_on();
      dependency.set_group(name);
      dependency.set_condition(v1::GroupDependency::RUNNING);
    }
  }

  void ConvertPod(const std::string& from, const std::string& to, const volcano::v1::PodSpec& pod,
                  v1::TaskGroup* group) {
    if (pod.containers_size() != 1) {
      Error(from + ".containers", absl::StrCat("a task is one process: expected 1 container, got ",
                                               pod.containers_size()));
    } else {
      ConvertContainer(from + ".containers[0]", to, pod.containers(0), group);
    }
    auto& labels = *group->mutable_node_selector()->mutable_match_labels();
    labels.insert(pod.node_selector().begin(), pod.node_selector().end());
    if (labels.empty()) group->clear_node_selector();
    Place(to + ".node_selector", from + ".node_selector");
    for (int i = 0; i < pod.tolerations_size(); ++i) {
      ConvertToleration(absl::StrCat(from, ".tolerations[", i, "]"), pod.tolerations(i),
                        group->add_tolerations());
    }
    ConvertRestartPolicy(from + ".restart_policy", pod.restart_policy(), group);
    if (pod.has_termination_grace_period_seconds()) {
      // The job has one grace: the longest.
      const int64_t seconds =
          std::max(spec_.kill_grace().seconds(), pod.termination_grace_period_seconds());
      spec_.mutable_kill_grace()->set_seconds(seconds);
      Place("spec.kill_grace", from + ".termination_grace_period_seconds");
    }
  }

  void ConvertRestartPolicy(const std::string& path, const std::string& policy,
                            v1::TaskGroup* group) {
    if (policy.empty() || policy == "Never") return;
    if (policy != "OnFailure")
      return Error(path, absl::StrCat("restartPolicy \"", policy, "\" is not Never or OnFailure"));
    v1::LifecyclePolicy& restart = *group->add_policies();
    restart.set_event(v1::LifecyclePolicy::TASK_FAILED);
    restart.set_action(v1::LifecyclePolicy::RESTART_TASK);
  }

  void ConvertContainer(const std::string& from, const std::string& to,
                        const volcano::v1::Container& container, v1::TaskGroup* group) {
    if (container.command().empty() && container.image().empty()) {
      Error(from, "\"command\" is missing: without an image there is no entry point");
    }
    for (const std::string& word : container.command())
      group->add_command(WithBerthVariables(word));
    auto* after = container.command().empty() ? group->mutable_args() : group->mutable_command();
    for (const std::string& word : container.args()) *after->Add() = WithBerthVariables(word);
    group->set_image(container.image());
    ConvertPullPolicy(from + ".image_pull_policy", container.image_pull_policy(), group);
    for (int i = 0; i < container.env_size(); ++i) {
      ConvertVariable(absl::StrCat(from, ".env[", i, "]"), container.env(i), group->add_env());
      Place(absl::StrCat(to, ".env[", i, "]"), absl::StrCat(from, ".env[", i, "]"));
    }
    group->set_working_dir(container.working_dir());
    for (const char* key :
         {".command", ".args", ".image", ".image_pull_policy", ".working_dir", ".resources"}) {
      Place(to + key, from + key);
    }
    if (container.has_resources()) {
      ConvertResources(from + ".resources", container.resources(), group->mutable_resources());
    }
  }

  void ConvertPullPolicy(const std::string& path, const std::string& policy, v1::TaskGroup* group) {
    if (policy == "Always") {
      group->set_image_pull_policy(v1::IMAGE_PULL_POLICY_ALWAYS);
    } else if (policy == "IfNotPresent") {
      group->set_image_pull_policy(v1::IMAGE_PULL_POLICY_IF_NOT_PRESENT);
    } else if (policy == "Never") {
      group->set_image_pull_policy(v1::IMAGE_PULL_POLICY_NEVER);
    } else if (!policy.empty()) {
      Error(path,
            absl::StrCat("imagePullPolicy \"", policy, "\" is not Always, IfNotPresent or Never"));
    }
  }

  // Berth sets environment variables exactly as written.
  void ConvertVariable(const std::string& path, const volcano::v1::EnvVar& in, v1::EnvVar* out) {
    out->set_name(in.name());
    out->set_value(in.value());
    if (absl::StrContains(in.value(), "$("))
      Error(path, "$(NAME) in a variable is not supported: write the value out");
  }

  // Berth has one amount for each resource: the larger of request and limit, which the task may
  // use.
  void ConvertResources(const std::string& path, const volcano::v1::Resources& in,
                        v1::ResourceRequest* out) {
    std::map<std::string, int64_t> amounts;
    CollectAmounts(path + ".requests", in.requests(), &amounts);
    CollectAmounts(path + ".limits", in.limits(), &amounts);
    for (const auto& amount : amounts) {
      if (amount.first == "cpu") {
        out->set_cpu_millis(amount.second);
      } else if (amount.first == "memory") {
        out->set_memory_bytes(amount.second);
      } else if (amount.second > 0) {
        v1::DeviceRequest& device = *out->add_devices();
        device.set_kind(amount.first);
        device.set_count(static_cast<int32_t>(std::min<int64_t>(amount.second, INT32_MAX)));
      }
    }
  }

  void CollectAmounts(const std::string& path, const Quantities& in,
                      std::map<std::string, int64_t>* amounts) {
    for (const auto& entry : std::map<std::string, std::string>(in.begin(), in.end())) {
      const std::string entry_path = absl::StrCat(path, "[\"", entry.first, "\"]");
      const std::string name = BerthResource(entry.first);
      if (name.empty()) {
        Error(entry_path, absl::StrCat("unsupported resource \"", entry.first, "\""));
        continue;
      }
      const absl::StatusOr<int64_t> amount = ParseKubernetesAmount(name, entry.second);
      if (!amount.ok()) {
        Error(entry_path, absl::StrCat(entry.first, ": ", amount.status().message()));
        continue;
      }
      int64_t& most = (*amounts)[name];
      most = std::max(most, *amount);
    }
  }

  void ConvertToleration(const std::string& path, const volcano::v1::Toleration& in,
                         v1::Toleration* out) {
    const std::string operation = in.operator_().empty() ? "Equal" : in.operator_();
    out->set_key(in.key());
    out->set_value(in.value());
    if (!in.effect().empty() && in.effect() != "NoSchedule" && in.effect() != "NoExecute") {
      Error(path, absl::StrCat("tolerations of effect ", in.effect(),
                               " are not supported: only NoSchedule and NoExecute"));
    }
    if (operation != "Equal" && operation != "Exists") {
      Error(path, absl::StrCat("operator \"", operation, "\" is not Equal or Exists"));
    }
    if (operation == "Exists" && !in.value().empty()) Error(path, "operator Exists takes no value");
    if (operation == "Equal" && in.value().empty()) {
      Error(path, "operator Equal with an empty value is not supported: use Exists");
    }
  }

  void ConvertPolicies(const std::string& where, const Policies& in, BerthPolicies* out) {
    for (int i = 0; i < in.size(); ++i) {
      const std::string path = absl::StrCat("spec.", where, "[", i, "]");
      std::vector<std::string> events(in[i].events().begin(), in[i].events().end());
      if (!in[i].event().empty()) events.push_back(in[i].event());
      if (events.empty() && in[i].has_exit_code()) events.emplace_back("PodFailed");
      if (events.empty()) Error(path, "a policy needs an event or an exitCode");
      for (const std::string& event : events) ConvertPolicy(path, event, in[i], out->Add());
    }
  }

  void ConvertPolicy(const std::string& path, const std::string& event,
                     const volcano::v1::Policy& in, v1::LifecyclePolicy* out) {
    const EventName* known_event = FindName(kEvents, event);
    const ActionName* known_action = FindName(kActions, in.action());
    if (known_event == nullptr)
      Error(path, UnknownWord("unsupported event", event, EntryNames(kEvents)));
    if (known_action == nullptr)
      Error(path, UnknownWord("unsupported action", in.action(), EntryNames(kActions)));
    if (known_event != nullptr) out->set_event(known_event->berth);
    if (known_action != nullptr) out->set_action(known_action->berth);
    if (in.has_exit_code()) out->add_exit_codes(in.exit_code());
    if (in.timeout().empty()) return;
    const absl::StatusOr<SecondsAndNanos> timeout = ParseDuration(in.timeout());
    if (!timeout.ok())
      return Error(path + ".timeout", absl::StrCat("timeout: ", timeout.status().message()));
    out->mutable_after()->set_seconds(timeout->seconds);
    out->mutable_after()->set_nanos(timeout->nanos);
  }

  const volcano::v1::Job& in_;
  const YamlPositions& source_;
  YamlErrors& errors_;
  YamlErrors& warnings_;
  Manifest& out_;
  v1::JobSpec& spec_;
};

}  // namespace

void ReadVolcanoJob(const YamlNode& document, const ManifestOptions& options, YamlErrors* errors,
                    YamlErrors* skipped, Manifest* manifest) {
  manifest->kind = Manifest::Kind::kJob;
  volcano::v1::Job job;
  YamlPositions source;
  const int before = errors->count();
  CheckContainerCommands(document, errors);
  ReadYamlNode(document, &job, errors, VolcanoReadOptions(options, skipped, &source));
  if (errors->count() == before) JobConverter(job, source, errors, skipped, manifest).Convert();
}

}  // namespace berth
