// Manifests of other schedulers on their way to Berth's: one file, one document of it, and the job
// that a document becomes. docs/users/manifests.md lists what each key becomes.
//
// What has no meaning here is a warning, and what would change what the job does is an error. All
// of a file are reported at once, with their places.
#ifndef BERTH_CLIENTS_CLI_FOREIGN_DOCUMENT_H_
#define BERTH_CLIENTS_CLI_FOREIGN_DOCUMENT_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "berth/kubernetes/v1/pod.pb.h"
#include "clients/cli/manifest.h"
#include "support/yaml_proto.h"

namespace berth {

using Labels = google::protobuf::Map<std::string, std::string>;

// What the documents of one file give to each other, and what is made of them.
struct ForeignFile {
  std::string name;
  const ManifestOptions& options;
  YamlErrors& errors;
  YamlErrors& warnings;
  std::vector<Manifest>& manifests;  // receives what is made of the documents
  std::map<std::string, kubernetes::v1::ConfigMap> config_maps;
  std::map<std::string, kubernetes::v1::Secret> secrets;
  std::map<std::string, kubernetes::v1::PriorityClass> priority_classes;
  std::map<std::string, const YamlNode*> job_templates;  // Volcano's
  std::set<std::string> pod_groups;                      // names
  bool has_flow = false;                                 // a JobFlow
  std::vector<const YamlNode*> pods;
};

class ForeignDocument {
 public:
  ForeignDocument(const YamlNode& node, ForeignFile& file);

  // Reads the whole document strictly. Must be called once, before what follows.
  void Read(google::protobuf::Message* message);
  // False if keys could not be read: what seems to be missing may be one of them.
  bool complete() const { return complete_; }

  // At the place of the path (in field names), or of the nearest enclosing one.
  void Error(absl::string_view path, absl::string_view text);
  void Warn(absl::string_view path, absl::string_view text);
  // `what` is missing; no error if the document is not complete.
  void Missing(absl::string_view path, absl::string_view what);
  bool Has(const std::string& path) const { return places_.count(path) > 0; }
  YamlPosition At(absl::string_view path) const;
  YamlPosition position() const { return node_.position; }
  const YamlNode& node() const { return node_; }
  ForeignFile& file() { return file_; }

 private:
  const YamlNode& node_;
  ForeignFile& file_;
  YamlPositions places_;
  bool complete_ = true;
};

// A job that a document becomes. Finish() hands it to the file.
class ForeignJob {
 public:
  explicit ForeignJob(ForeignDocument& document);
  // A job made of several documents, whose places are taken from the present one.
  void SetDocument(ForeignDocument& document) { document_ = &document; }

  ForeignDocument& document() { return *document_; }
  v1::JobSpec& spec() { return *manifest_.job.mutable_spec(); }
  Manifest& manifest() { return manifest_; }

  // Errors of the server at `berth_path` are reported at `path`.
  void Place(const std::string& berth_path, const std::string& path);

  // Name, labels, annotations, and Kueue's queue and priority class. Returns true if the job is
  // queued by Kueue, which suspends jobs until it lets them start.
  bool ConvertMetadata(const std::string& path, const kubernetes::v1::Metadata& metadata);
  // A number, a class of the same file, or the name of one of Berth's.
  void ConvertPriorityClass(const std::string& path, const std::string& name);
  // volcano.sh/preemptable among labels or annotations.
  void ConvertPreemptable(const std::string& path, const Labels& labels);
  // Annotations at `path` by which Volcano schedules, and Berth does not: a warning for each.
  // The queue that Volcano's annotation names, if the job has none yet.
  void ConvertVolcanoQueue(const std::string& path, const Labels& annotations);
  // A key that is set, and has no effect.
  void WarnOfNoEffect(const std::string& path, absl::string_view why);
  void WarnAboutAnnotations(const std::string& path, const Labels& annotations);
  void ConvertSuspend(const std::string& path, bool suspend, bool queued_by_kueue);
  void ConvertRunLimit(const std::string& path, int64_t seconds);
  void ConvertTimeToLive(const std::string& path, int32_t seconds);
  // The job's grace is the longest of its groups'.
  void ConvertGrace(const std::string& path, int64_t seconds);
  // Adds a policy on failures of a group's or the job's tasks.
  static void AddRestart(v1::LifecyclePolicy::Action action,
                         google::protobuf::RepeatedPtrField<v1::LifecyclePolicy>* policies);

  void Finish();

 private:
  // Adds an error if it is.
  bool IsNegative(const std::string& path, int64_t seconds);
  void ConvertName(const std::string& path, const kubernetes::v1::Metadata& metadata);

  ForeignDocument* document_;
  Manifest manifest_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_FOREIGN_DOCUMENT_H_
