#include "clients/cli/foreign_kinds.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace berth {
namespace {

struct ForeignKind {
  const char* api_version;
  const char* kind;
  void (*read)(const YamlNode& node, ForeignFile* file);
};

void ReadNothing(const YamlNode&, ForeignFile*) {}  // CollectShared did

void ReadJobTemplate(const YamlNode& node, ForeignFile* file) {
  if (!file->has_flow)
    file->errors.Add(node.position,
                     "a JobTemplate runs only as part of a JobFlow in the same file");
}

constexpr ForeignKind kForeignKinds[] = {
    {"batch.volcano.sh/v1alpha1", "Job", ReadVolcanoJob},
    {"batch.volcano.sh/v1alpha1", "CronJob", ReadVolcanoCronJob},
    {"flow.volcano.sh/v1alpha1", "JobFlow", ReadVolcanoJobFlow},
    {"flow.volcano.sh/v1alpha1", "JobTemplate", ReadJobTemplate},
    {"scheduling.volcano.sh/v1beta1", "PodGroup", ReadVolcanoPodGroup},
    {"batch/v1", "Job", ReadKubernetesJob},
    {"batch/v1", "CronJob", ReadKubernetesCronJob},
    {"v1", "Pod", ReadKubernetesPod},
    {"v1", "ConfigMap", ReadNothing},
    {"v1", "Secret", ReadNothing},
    {"scheduling.k8s.io/v1", "PriorityClass", ReadNothing},
    {"jobset.x-k8s.io/v1alpha2", "JobSet", ReadJobSet},
    {"kubeflow.org/v1", "PyTorchJob", ReadPyTorchJob},
    {"kubeflow.org/v2beta1", "MPIJob", ReadMpiJob},
    {"trainer.kubeflow.org/v1alpha1", "TrainJob", ReadTrainJob},
};

struct OtherKind {
  const char* kind;
  bool refused;
  const char* text;
};
// Kinds of which the version does not matter.
constexpr OtherKind kOtherKinds[] = {
    {"Namespace", false, "Berth has no namespaces"},
    {"ServiceAccount", false, "tasks run as the operator's users"},
    {"Service", true,
     "tasks find each other by MASTER_ADDR and the file BERTH_HOSTFILE, not by names"},
    {"Deployment", true, "Berth runs jobs that end, not services"},
    {"StatefulSet", true, "Berth runs jobs that end, not services"},
    {"DaemonSet", true, "Berth runs jobs that end, not services"},
    {"PersistentVolumeClaim", true,
     "Berth mounts no claims: mount the file system on the nodes, and use hostPath"},
    {"TFJob", true, "Berth sets no TF_CONFIG"},
    {"XGBoostJob", true, "only PyTorchJob, MPIJob and TrainJob of Kubeflow are read"},
    {"PaddleJob", true, "only PyTorchJob, MPIJob and TrainJob of Kubeflow are read"},
    {"JAXJob", true, "only PyTorchJob, MPIJob and TrainJob of Kubeflow are read"},
    {"RayCluster", true, "Berth starts no Ray cluster"},
    {"RayJob", true, "Berth starts no Ray cluster"},
    {"LocalQueue", true, "create a queue of that name: berth queue create"},
    {"ClusterQueue", true, "create a queue with a limit: berth queue create"},
    {"ResourceFlavor", true, "nodes have labels, and jobs a nodeSelector"},
    {"WorkloadPriorityClass", true, "create a priority class of that name"},
};

std::string TopText(const YamlNode& document, const char* key) {
  const YamlNode* value = document.Find(key);
  return value != nullptr && value->is_scalar() ? value->text : "";
}

std::string MetadataName(const YamlNode& document) {
  const YamlNode* metadata = document.Find("metadata");
  return metadata == nullptr ? "" : TopText(*metadata, "name");
}

template <class Message>
void CollectInto(const YamlNode& node, ForeignFile* file, std::map<std::string, Message>* all) {
  ForeignDocument document(node, *file);
  Message message;
  document.Read(&message);
  (*all)[message.metadata().name()] = std::move(message);
}

void CollectPriorityClass(const YamlNode& node, ForeignFile* file) {
  CollectInto(node, file, &file->priority_classes);
  ForeignDocument document(node, *file);
  if (TopText(node, "globalDefault") == "true")
    document.Error("", "globalDefault: a class of a file is only for the jobs of the file");
  document.Warn("", "the class is only for the jobs of this file: they get its value as priority");
}

bool RefuseOther(const YamlNode& document, const std::string& kind, ForeignFile* file) {
  if (absl::StartsWith(TopText(document, "apiVersion"), "berth/")) return false;
  for (const OtherKind& other : kOtherKinds) {
    if (kind != other.kind) continue;
    const std::string text = absl::StrCat("kind ", kind, ": ", other.text);
    (other.refused ? file->errors : file->warnings).Add(document.position, text);
    return true;
  }
  return false;
}

}  // namespace

std::vector<YamlNode> WithoutLists(std::vector<YamlNode> documents, YamlErrors* errors) {
  std::vector<YamlNode> all;
  for (YamlNode& document : documents) {
    const YamlNode* items = document.is_map() ? document.Find("items") : nullptr;
    if (items == nullptr || !absl::EndsWith(TopText(document, "kind"), "List")) {
      all.push_back(std::move(document));
      continue;
    }
    if (!items->is_list() && !items->is_null())
      errors->Add(items->position, "items: expected a list of manifests");
    for (const YamlNode& item : items->items) all.push_back(item);
  }
  return all;
}

void CollectShared(const std::vector<YamlNode>& documents, ForeignFile* file) {
  for (const YamlNode& document : documents) {
    if (!document.is_map()) continue;
    const std::string version = TopText(document, "apiVersion"), kind = TopText(document, "kind");
    if (version == "v1" && kind == "ConfigMap") CollectInto(document, file, &file->config_maps);
    if (version == "v1" && kind == "Secret") CollectInto(document, file, &file->secrets);
    if (version == "v1" && kind == "Pod") file->pods.push_back(&document);
    if (version == "scheduling.k8s.io/v1" && kind == "PriorityClass")
      CollectPriorityClass(document, file);
    if (kind == "JobTemplate") file->job_templates[MetadataName(document)] = &document;
    if (kind == "JobFlow") file->has_flow = true;
    if (kind == "PodGroup") file->pod_groups.insert(MetadataName(document));
  }
}

bool ReadForeign(const YamlNode& document, ForeignFile* file) {
  const std::string version = TopText(document, "apiVersion"), kind = TopText(document, "kind");
  for (const ForeignKind& known : kForeignKinds) {
    if (version != known.api_version || kind != known.kind) continue;
    known.read(document, file);
    return true;
  }
  return RefuseOther(document, kind, file);
}

std::vector<std::string> ForeignApiVersions() {
  std::vector<std::string> versions;
  for (const ForeignKind& known : kForeignKinds) versions.emplace_back(known.api_version);
  return versions;
}

std::vector<std::string> ForeignKinds(absl::string_view api_version) {
  std::vector<std::string> kinds;
  for (const ForeignKind& known : kForeignKinds) {
    if (api_version == known.api_version) kinds.emplace_back(known.kind);
  }
  return kinds;
}

}  // namespace berth
