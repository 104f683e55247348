#include "clients/cli/foreign_document.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/manifest_hints.h"
#include "clients/cli/volcano.h"

namespace berth {
namespace {

constexpr char kDefaultQueue[] = "default";
constexpr char kKueueQueue[] = "kueue.x-k8s.io/queue-name";
constexpr char kKueuePriorityClass[] = "kueue.x-k8s.io/priority-class";
constexpr char kVolcanoQueue[] = "scheduling.volcano.sh/queue-name";
constexpr char kPreemptable[] = "volcano.sh/preemptable";
constexpr char kVolcanoAnnotation[] = "volcano.sh/";
constexpr char kTaskSpec[] = "volcano.sh/task-spec";
constexpr char kLastApplied[] = "kubectl.kubernetes.io/last-applied-configuration";
constexpr int32_t kGreatestPriority = 1'000'000;
constexpr size_t kRandomLetters = 5;  // as Kubernetes

std::string RandomEnding() {
  constexpr absl::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::random_device random;
  std::string ending;
  for (size_t i = 0; i < kRandomLetters; ++i) ending += kLetters[random() % kLetters.size()];
  return ending;
}

std::string EntryPath(const std::string& path, absl::string_view key) {
  return absl::StrCat(path, "[\"", key, "\"]");
}

}  // namespace

ForeignDocument::ForeignDocument(const YamlNode& node, ForeignFile& file)
    : node_(node), file_(file) {}

void ForeignDocument::Read(google::protobuf::Message* message) {
  const int before = file_.errors.count();
  CheckContainerCommands(node_, &file_.errors);
  ReadYamlNode(node_, message, &file_.errors,
               VolcanoReadOptions(file_.options, &file_.warnings, &places_));
  complete_ = file_.errors.count() == before;
}

void ForeignDocument::Error(absl::string_view path, absl::string_view text) {
  file_.errors.Add(At(path), text);
}

void ForeignDocument::Warn(absl::string_view path, absl::string_view text) {
  file_.warnings.Add(At(path), text);
}

void ForeignDocument::Missing(absl::string_view path, absl::string_view what) {
  if (complete_) Error(path, absl::StrCat("\"", what, "\" is missing"));
}

YamlPosition ForeignDocument::At(absl::string_view path) const {
  return FindPosition(places_, path, node_.position);
}

ForeignJob::ForeignJob(ForeignDocument& document) : document_(&document) {
  manifest_.kind = Manifest::Kind::kJob;
  manifest_.file = document.file().name;
  manifest_.position = document.position();
  spec().set_queue(kDefaultQueue);
}

void ForeignJob::Place(const std::string& berth_path, const std::string& path) {
  manifest_.positions[berth_path] = document_->At(path);
}

void ForeignJob::ConvertName(const std::string& path, const kubernetes::v1::Metadata& metadata) {
  const bool generated = metadata.name().empty() && !metadata.generate_name().empty();
  manifest_.job.set_name(generated ? metadata.generate_name() + RandomEnding() : metadata.name());
  Place("name", path + (generated ? ".generate_name" : ".name"));
  const std::string& space = metadata.namespace_();
  if (space.empty() || space == "default") return;
  document_->Warn(path + ".namespace",
                  "namespace is left out: Berth has none, and names are unique in the cluster");
}

bool ForeignJob::ConvertMetadata(const std::string& path,
                                 const kubernetes::v1::Metadata& metadata) {
  ConvertName(path, metadata);
  const std::string labels = path + ".labels", annotations = path + ".annotations";
  *spec().mutable_labels() = metadata.labels();
  *spec().mutable_annotations() = metadata.annotations();
  spec().mutable_annotations()->erase(kLastApplied);
  Place("spec.labels", labels);
  Place("spec.annotations", annotations);
  ConvertPreemptable(labels, metadata.labels());
  ConvertPreemptable(annotations, metadata.annotations());
  WarnAboutAnnotations(annotations, metadata.annotations());
  ConvertVolcanoQueue(annotations, metadata.annotations());
  if (const auto priority = metadata.labels().find(kKueuePriorityClass);
      priority != metadata.labels().end()) {
    ConvertPriorityClass(EntryPath(labels, kKueuePriorityClass), priority->second);
  }
  const auto queue = metadata.labels().find(kKueueQueue);
  if (queue == metadata.labels().end()) return false;
  spec().set_queue(queue->second);
  Place("spec.queue", EntryPath(labels, kKueueQueue));
  return true;
}

// Set by an annotation, in older manifests by a label.
void ForeignJob::ConvertPreemptable(const std::string& path, const Labels& labels) {
  const auto found = labels.find(kPreemptable);
  if (found == labels.end()) return;
  const std::string entry = EntryPath(path, kPreemptable);
  if (found->second != "true" && found->second != "false") {
    return document_->Error(
        entry,
        absl::StrCat(kPreemptable, " must be \"true\" or \"false\", not \"", found->second, "\""));
  }
  spec().set_preemptible(found->second == "true");
  Place("spec.preemptible", entry);
}

void ForeignJob::ConvertPriorityClass(const std::string& path, const std::string& name) {
  if (name.empty()) return;
  const auto& classes = document_->file().priority_classes;
  const auto known = classes.find(name);
  int32_t priority = 0;
  if (known == classes.end() && !absl::SimpleAtoi(name, &priority)) {
    spec().clear_priority();
    spec().set_priority_class(name);
    return Place("spec.priority_class", path);
  }
  if (known != classes.end()) priority = known->second.value();
  spec().clear_priority_class();
  spec().set_priority(priority);
  Place("spec.priority", path);
  if (priority > kGreatestPriority || priority < -kGreatestPriority) {
    document_->Error(path, absl::StrCat("priority class ", name, ": its value ", priority,
                                        " is not within -1000000..1000000"));
  }
  if (known != classes.end() && known->second.preemption_policy() == "Never") {
    spec().set_preemption_policy(v1::NEVER);
    Place("spec.preemption_policy", path);
  }
}

void ForeignJob::ConvertVolcanoQueue(const std::string& path, const Labels& annotations) {
  const auto queue = annotations.find(kVolcanoQueue);
  if (queue == annotations.end() || spec().queue() != kDefaultQueue) return;
  spec().set_queue(queue->second);
  Place("spec.queue", EntryPath(path, kVolcanoQueue));
}

void ForeignJob::WarnOfNoEffect(const std::string& path, absl::string_view why) {
  if (document_->Has(path)) document_->Warn(path, absl::StrCat("this has no effect: ", why));
}

void ForeignJob::WarnAboutAnnotations(const std::string& path, const Labels& annotations) {
  for (const auto& entry :
       std::map<std::string, std::string>(annotations.begin(), annotations.end())) {
    const std::string& key = entry.first;
    if (!absl::StartsWith(key, kVolcanoAnnotation) || key == kPreemptable || key == kTaskSpec)
      continue;
    document_->Warn(EntryPath(path, key), absl::StrCat(key, " has no effect on Berth"));
  }
}

void ForeignJob::ConvertSuspend(const std::string& path, bool suspend, bool queued_by_kueue) {
  // With Kueue, "suspend: true" only means that Kueue decides when the job starts, as Berth does.
  if (!suspend || queued_by_kueue) return;
  spec().set_suspended(true);
  Place("spec.suspended", path);
}

bool ForeignJob::IsNegative(const std::string& path, int64_t seconds) {
  if (seconds < 0) document_->Error(path, absl::StrCat(seconds, " seconds: must not be negative"));
  return seconds < 0;
}

void ForeignJob::ConvertRunLimit(const std::string& path, int64_t seconds) {
  if (IsNegative(path, seconds)) return;
  const int64_t longest = std::max(spec().run_limit().seconds(), seconds);
  spec().mutable_run_limit()->set_seconds(longest);
  Place("spec.run_limit", path);
}

void ForeignJob::ConvertTimeToLive(const std::string& path, int32_t seconds) {
  if (IsNegative(path, seconds)) return;
  spec().mutable_ttl_after_finished()->set_seconds(seconds);
  Place("spec.ttl_after_finished", path);
}

void ForeignJob::ConvertGrace(const std::string& path, int64_t seconds) {
  if (IsNegative(path, seconds)) return;
  const int64_t longest = std::max(spec().kill_grace().seconds(), seconds);
  spec().mutable_kill_grace()->set_seconds(longest);
  Place("spec.kill_grace", path);
}

void ForeignJob::AddRestart(v1::LifecyclePolicy::Action action,
                            google::protobuf::RepeatedPtrField<v1::LifecyclePolicy>* policies) {
  v1::LifecyclePolicy& restart = *policies->Add();
  restart.set_event(v1::LifecyclePolicy::TASK_FAILED);
  restart.set_action(action);
}

void ForeignJob::Finish() { document_->file().manifests.push_back(std::move(manifest_)); }

}  // namespace berth
