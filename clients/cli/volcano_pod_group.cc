// Volcano's PodGroup with the Pods of the same file that name it: one job. A Pod that names none is
// a job of its own.
#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cli/foreign_kinds.h"
#include "clients/cli/kubernetes_pod.h"
#include "clients/cli/volcano_job.h"
#include "google/protobuf/util/message_differencer.h"

namespace berth {
namespace {

constexpr const char* kGroupNames[] = {"scheduling.k8s.io/group-name",
                                       "scheduling.volcano.sh/group-name"};
constexpr char kTaskName[] = "volcano.sh/task-spec";

// The annotation of a pod's document, without reading the whole.
std::string AnnotationOf(const YamlNode& pod, absl::string_view name) {
  const YamlNode* metadata = pod.Find("metadata");
  const YamlNode* annotations = metadata == nullptr ? nullptr : metadata->Find("annotations");
  const YamlNode* value = annotations == nullptr ? nullptr : annotations->Find(name);
  return value == nullptr ? "" : value->text;
}

std::string PodGroupOf(const YamlNode& pod) {
  for (const char* name : kGroupNames) {
    if (const std::string group = AnnotationOf(pod, name); !group.empty()) return group;
  }
  return "";
}

// Adds pods to a job. A pod like the one before is another task of its group.
class PodsConverter {
 public:
  explicit PodsConverter(ForeignJob& job) : job_(job) {}

  void Add(ForeignDocument& document, const kubernetes::v1::Pod& pod) {
    job_.SetDocument(document);
    const std::string task = AnnotationOf(document.node(), kTaskName);
    auto& groups = *job_.spec().mutable_groups();
    if (!groups.empty() && task == last_task_ &&
        google::protobuf::util::MessageDifferencer::Equals(pod.spec(), last_pod_)) {
      v1::TaskGroup& last = groups[groups.size() - 1];
      return last.set_replicas(last.replicas() + 1);
    }
    last_pod_ = pod.spec();
    last_task_ = task;
    const std::string to = absl::StrCat("spec.groups[", groups.size(), "]");
    v1::TaskGroup& group = *groups.Add();
    group.set_name(task.empty() ? pod.metadata().name() : task);
    group.set_replicas(1);
    job_.Place(to, "metadata.name");
    kubernetes::v1::PodTemplate as_template;
    *as_template.mutable_metadata() = pod.metadata();
    *as_template.mutable_spec() = pod.spec();
    ConvertPodTemplate("", as_template, PodSurroundings(), to, &job_, &group);
    ConvertRestartPolicy(document, pod.spec().restart_policy(), &group);
  }

 private:
  void ConvertRestartPolicy(ForeignDocument& document, const std::string& policy,
                            v1::TaskGroup* group) {
    if (policy == "Never") return;
    if (policy == "Always" || policy.empty()) {
      document.Warn("spec.restart_policy",
                    "restartPolicy Always: a task that exits with 0 has succeeded, and is not "
                    "started again");
    }
    ForeignJob::AddRestart(v1::LifecyclePolicy::RESTART_TASK, group->mutable_policies());
    job_.spec().set_max_retries(kPodRestarts);
  }

  static constexpr int32_t kPodRestarts = 6;  // Kubernetes sets no limit
  ForeignJob& job_;
  kubernetes::v1::PodSpec last_pod_;
  std::string last_task_;
};

}  // namespace

void ReadVolcanoPodGroup(const YamlNode& node, ForeignFile* file) {
  ForeignDocument document(node, *file);
  volcano::v1::PodGroup in;
  document.Read(&in);
  ForeignJob job(document);
  job.ConvertMetadata("metadata", in.metadata());
  PodsConverter pods(job);
  if (in.metadata().name().empty()) return document.Missing("metadata", "metadata.name");
  for (const YamlNode* pod : file->pods) {
    if (PodGroupOf(*pod) != in.metadata().name()) continue;
    ForeignDocument pod_document(*pod, *file);
    kubernetes::v1::Pod one;
    pod_document.Read(&one);
    pods.Add(pod_document, one);
  }
  job.SetDocument(document);
  if (job.spec().groups().empty()) {
    return document.Error(
        "metadata.name", absl::StrCat("no Pod of this file names the PodGroup: without its pods it "
                                      "is not a job (annotation ",
                                      kGroupNames[0], ")"));
  }
  if (in.spec().has_min_member()) job.spec().set_min_available(in.spec().min_member());
  job.Place("spec.min_available", "spec.min_member");
  if (!in.spec().queue().empty()) job.spec().set_queue(in.spec().queue());
  job.Place("spec.queue", "spec.queue");
  job.ConvertPriorityClass("spec.priority_class_name", in.spec().priority_class_name());
  for (const auto& [name, minimum] : std::map<std::string, int32_t>(
           in.spec().min_task_member().begin(), in.spec().min_task_member().end())) {
    auto& groups = *job.spec().mutable_groups();
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.name() == name; });
    if (group != groups.end()) {
      group->set_min_available(minimum);
    } else {
      document.Error("spec.min_task_member",
                     absl::StrCat("minTaskMember: there is no group \"", name, "\""));
    }
  }
  if (in.spec().has_network_topology()) {
    ConvertVolcanoTopology("spec.network_topology", "spec.topology", in.spec().network_topology(),
                           &job, job.spec().mutable_topology());
  }
  job.Finish();
}

void ReadKubernetesPod(const YamlNode& node, ForeignFile* file) {
  ForeignDocument document(node, *file);
  if (const std::string group = PodGroupOf(node); !group.empty()) {
    if (file->pod_groups.count(group) == 0)
      document.Error("", absl::StrCat("PodGroup \"", group, "\" is not in this file"));
    return;  // with its group
  }
  kubernetes::v1::Pod in;
  document.Read(&in);
  ForeignJob job(document);
  job.ConvertMetadata("metadata", in.metadata());
  PodsConverter(job).Add(document, in);
  job.spec().mutable_groups(0)->set_name("main");
  job.Finish();
}

}  // namespace berth
