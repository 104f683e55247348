#include "clients/cli/kubernetes_pod.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace berth {
namespace {

using kubernetes::v1::Container;
using kubernetes::v1::PodSpec;

constexpr char kOperatingSystem[] = "kubernetes.io/os";
struct PodTopology {
  const char* annotation;  // Kueue's
  v1::TopologyConstraint::Mode mode;
};
constexpr PodTopology kPodTopologies[] = {
    {"kueue.x-k8s.io/podset-required-topology", v1::TopologyConstraint::HARD},
    {"kueue.x-k8s.io/podset-preferred-topology", v1::TopologyConstraint::SOFT},
};

// The topology key of the annotation names a tier by its last part: "example.com/rack", "rack".
void ConvertPodTopology(const std::string& path, const Labels& annotations, const std::string& to,
                        ForeignJob& job, v1::TaskGroup* group) {
  for (const PodTopology& known : kPodTopologies) {
    const auto found = annotations.find(known.annotation);
    if (found == annotations.end()) continue;
    group->mutable_topology()->set_mode(known.mode);
    group->mutable_topology()->set_highest_tier_name(
        found->second.substr(found->second.rfind('/') + 1));
    job.Place(to + ".topology", absl::StrCat(path, "[\"", known.annotation, "\"]"));
  }
}

class PodConverter {
 public:
  PodConverter(ForeignJob& job, const std::string& to, v1::TaskGroup& group)
      : job_(job), document_(job.document()), to_(to), group_(group) {}

  void Convert(const std::string& path, const PodSpec& pod) {
    ConvertNodeSelector(path, pod);
    for (int i = 0; i < pod.tolerations_size(); ++i) {
      ConvertToleration(absl::StrCat(path, ".tolerations[", i, "]"), pod.tolerations(i));
    }
    if (pod.has_termination_grace_period_seconds()) {
      job_.ConvertGrace(path + ".termination_grace_period_seconds",
                        pod.termination_grace_period_seconds());
    }
    if (pod.has_active_deadline_seconds())
      job_.ConvertRunLimit(path + ".active_deadline_seconds", pod.active_deadline_seconds());
    // The job's comes first.
    if (job_.spec().priority_class().empty() && job_.spec().priority() == 0)
      job_.ConvertPriorityClass(path + ".priority_class_name", pod.priority_class_name());
    if (pod.preemption_policy() == "Never") job_.spec().set_preemption_policy(v1::NEVER);
    CheckSecurity(path + ".security_context", pod.security_context());
    for (int i = 0; i < pod.topology_spread_constraints_size(); ++i) {
      CheckSpread(absl::StrCat(path, ".topology_spread_constraints[", i, "]"),
                  pod.topology_spread_constraints(i));
    }
  }

  void CheckSecurity(const std::string& path, const kubernetes::v1::SecurityContext& context) {
    if (context.privileged()) {
      document_.Error(path + ".privileged",
                      "privileged: tasks get no rights beyond those of their user");
    }
    for (const std::string& capability : context.capabilities().add()) {
      const std::string where = path + ".capabilities.add";
      if (capability == "IPC_LOCK") {
        document_.Warn(where, "IPC_LOCK is left out: the agent's limits of locked memory apply");
      } else {
        document_.Error(where,
                        absl::StrCat("capability ", capability, ": tasks get no capabilities"));
      }
    }
  }

 private:
  void ConvertNodeSelector(const std::string& path, const PodSpec& pod) {
    auto& labels = *group_.mutable_node_selector()->mutable_match_labels();
    labels.insert(pod.node_selector().begin(), pod.node_selector().end());
    const std::string affinity =
        path + ".affinity.node_affinity.required_during_scheduling_ignored_during_execution";
    const auto& required =
        pod.affinity().node_affinity().required_during_scheduling_ignored_during_execution();
    if (required.node_selector_terms_size() > 1)
      document_.Error(affinity, "several nodeSelectorTerms: a node matches one set of labels");
    if (required.node_selector_terms_size() == 1)
      ConvertNodeTerm(affinity, required.node_selector_terms(0), &labels);
    // All of Berth's nodes run Linux, and need no label that says so.
    if (const auto system = labels.find(kOperatingSystem);
        system != labels.end() && system->second == "linux") {
      labels.erase(system);
    }
    if (labels.empty()) group_.clear_node_selector();
    job_.Place(to_ + ".node_selector", path + ".node_selector");
  }

  void ConvertNodeTerm(const std::string& path, const kubernetes::v1::NodeSelectorTerm& term,
                       Labels* labels) {
    for (const auto& expression : term.match_expressions()) {
      if (expression.operator_() == "In" && expression.values_size() == 1) {
        (*labels)[expression.key()] = expression.values(0);
        continue;
      }
      document_.Error(path, absl::StrCat("nodeAffinity on ", expression.key(),
                                         ": only operator In with one value is supported"));
    }
  }

  void ConvertToleration(const std::string& path, const kubernetes::v1::Toleration& in) {
    v1::Toleration& out = *group_.add_tolerations();
    const std::string operation = in.operator_().empty() ? "Equal" : in.operator_();
    out.set_key(in.key());
    out.set_value(in.value());
    if (!in.effect().empty() && in.effect() != "NoSchedule" && in.effect() != "NoExecute") {
      document_.Error(path, absl::StrCat("tolerations of effect ", in.effect(),
                                         " are not supported: only NoSchedule and NoExecute"));
    }
    if (operation != "Equal" && operation != "Exists") {
      document_.Error(path, absl::StrCat("operator \"", operation, "\" is not Equal or Exists"));
    }
    if (operation == "Exists" && !in.value().empty())
      document_.Error(path, "operator Exists takes no value");
    if (operation == "Equal" && in.value().empty()) {
      document_.Error(path, "operator Equal with an empty value is not supported: use Exists");
    }
  }

  void CheckSpread(const std::string& path, const kubernetes::v1::TopologySpread& spread) {
    if (spread.when_unsatisfiable() == "ScheduleAnyway") {
      document_.Warn(path, "a spread with ScheduleAnyway is left out: it is only a preference");
    } else {
      document_.Error(path,
                      "topologySpreadConstraints with DoNotSchedule: Berth's nodes have "
                      "HyperNodes instead; write a Berth manifest with spread:");
    }
  }

  ForeignJob& job_;
  ForeignDocument& document_;
  const std::string& to_;
  v1::TaskGroup& group_;
};

class ContainerConverter {
 public:
  ContainerConverter(const PodSurroundings& surroundings, ForeignJob& job, const std::string& to,
                     v1::TaskGroup& group)
      : surroundings_(surroundings), job_(job), document_(job.document()), to_(to), group_(group) {}

  void Convert(const std::string& path, const Container& container) {
    if (container.command().empty() && container.image().empty() && document_.complete())
      document_.Error(path, "\"command\" is missing: without an image there is no entry point");
    group_.set_image(container.image());
    ConvertPullPolicy(path + ".image_pull_policy", container.image_pull_policy());
    ConvertCommand(path, container);
    group_.set_working_dir(container.working_dir());
    for (const char* key :
         {".command", ".args", ".image", ".image_pull_policy", ".working_dir", ".resources"}) {
      job_.Place(to_ + key, path + key);
    }
    PodConverter(job_, to_, group_)
        .CheckSecurity(path + ".security_context", container.security_context());
    if (container.has_resources())
      ConvertResources(path + ".resources", container.resources(), &job_,
                       group_.mutable_resources());
  }

 private:
  void ConvertCommand(const std::string& path, const Container& container) {
    Variables known = surroundings_.in_commands;
    std::vector<std::string> assignments =
        ConvertEnvironment(path, container, surroundings_, to_, &job_, &group_, &known);
    if (!assignments.empty() && container.command().empty()) {
      document_.Error(path, absl::StrCat("the image's own command cannot get ",
                                         assignments[0].substr(0, assignments[0].find('=')),
                                         ", which is known when a task starts: write command"));
    } else if (!assignments.empty()) {
      group_.add_command("env");
      for (std::string& one : assignments) group_.add_command(std::move(one));
    }
    for (const std::string& word : container.command()) group_.add_command(Word(word, known));
    auto* after = container.command().empty() ? group_.mutable_args() : group_.mutable_command();
    for (const std::string& word : container.args()) *after->Add() = Word(word, known);
  }

  std::string Word(const std::string& word, const Variables& known) {
    return absl::StrReplaceAll(CommandWord(word, known), surroundings_.replaced);
  }

  void ConvertPullPolicy(const std::string& path, const std::string& policy) {
    if (policy == "Always") {
      group_.set_image_pull_policy(v1::IMAGE_PULL_POLICY_ALWAYS);
    } else if (policy == "IfNotPresent") {
      group_.set_image_pull_policy(v1::IMAGE_PULL_POLICY_IF_NOT_PRESENT);
    } else if (policy == "Never") {
      group_.set_image_pull_policy(v1::IMAGE_PULL_POLICY_NEVER);
    } else if (!policy.empty()) {
      document_.Error(path, absl::StrCat("imagePullPolicy \"", policy,
                                         "\" is not Always, IfNotPresent or Never"));
    }
  }

  const PodSurroundings& surroundings_;
  ForeignJob& job_;
  ForeignDocument& document_;
  const std::string& to_;
  v1::TaskGroup& group_;
};

}  // namespace

void ConvertContainer(const std::string& path, const Container& container,
                      const PodSurroundings& surroundings, const std::string& to, ForeignJob* job,
                      v1::TaskGroup* group) {
  ContainerConverter(surroundings, *job, to, *group).Convert(path, container);
}

void ConvertPodTemplate(const std::string& path, const kubernetes::v1::PodTemplate& pod,
                        const PodSurroundings& surroundings, const std::string& to, ForeignJob* job,
                        v1::TaskGroup* group) {
  const std::string prefix = path.empty() ? "" : path + ".";
  const std::string spec = prefix + "spec";
  ConvertContainers(spec, pod.spec(), surroundings, to, job, group);
  for (const Labels* labels : {&pod.metadata().labels(), &pod.metadata().annotations()}) {
    job->ConvertPreemptable(prefix + "metadata", *labels);
  }
  const std::string annotations = prefix + "metadata.annotations";
  job->WarnAboutAnnotations(annotations, pod.metadata().annotations());
  job->ConvertVolcanoQueue(annotations, pod.metadata().annotations());
  ConvertPodTopology(annotations, pod.metadata().annotations(), to, *job, group);
  PodConverter(*job, to, *group).Convert(spec, pod.spec());
}

}  // namespace berth
