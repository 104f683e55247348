// Volcano's JobFlow: one job for each flow, from the JobTemplate of its name in the same file.
#include <set>

#include "absl/strings/str_cat.h"
#include "clients/cli/foreign_kinds.h"
#include "clients/cli/volcano_job.h"

namespace berth {
namespace {

class FlowConverter {
 public:
  FlowConverter(const volcano::v1::JobFlow& in, ForeignDocument& document)
      : in_(in), document_(document) {
    for (const auto& flow : in.spec().flows()) names_.insert(flow.name());
  }

  void Convert() {
    const std::string& policy = in_.spec().job_retain_policy();
    if (policy == "delete") {
      document_.Warn("spec.job_retain_policy",
                     "jobRetainPolicy delete is left out: jobs are deleted after their "
                     "ttlSecondsAfterFinished, or the server's time");
    } else if (!policy.empty() && policy != "retain") {
      document_.Error("spec.job_retain_policy",
                      absl::StrCat("jobRetainPolicy \"", policy, "\" is not retain or delete"));
    }
    if (in_.spec().flows().empty()) document_.Missing("spec", "spec.flows");
    if (!in_.metadata().labels().empty())
      document_.Warn("metadata.labels",
                     "labels of a JobFlow are left out: its jobs have their own");
    if (!in_.metadata().annotations().empty()) {
      document_.Warn("metadata.annotations",
                     "annotations of a JobFlow are left out: its jobs have their own");
    }
    for (int i = 0; i < in_.spec().flows_size(); ++i) ConvertFlow(i);
  }

 private:
  std::string JobName(const std::string& flow) const {
    return absl::StrCat(in_.metadata().name(), "-", flow);
  }

  void ConvertFlow(int index) {
    const volcano::v1::Flow& flow = in_.spec().flows(index);
    const std::string path = absl::StrCat("spec.flows[", index, "]");
    const auto& templates = document_.file().job_templates;
    const auto found = templates.find(flow.name());
    if (found == templates.end()) {
      return document_.Error(path + ".name", absl::StrCat("there is no JobTemplate \"", flow.name(),
                                                          "\" in this file"));
    }
    ForeignDocument source(*found->second, document_.file());
    volcano::v1::JobTemplate job_template;
    source.Read(&job_template);
    ForeignJob job(source);
    kubernetes::v1::Metadata metadata = job_template.metadata();
    metadata.set_name(JobName(flow.name()));
    job.ConvertMetadata("metadata", metadata);
    ConvertVolcanoJobSpec("spec", job_template.spec(), metadata.namespace_(), &job);
    job.SetDocument(document_);
    job.Place("name", path + ".name");
    ConvertTargets(path + ".depends_on", flow, &job);
    job.Finish();
  }

  void ConvertTargets(const std::string& path, const volcano::v1::Flow& flow, ForeignJob* job) {
    for (const std::string& target : flow.depends_on().targets()) {
      if (names_.count(target) == 0)
        document_.Error(path, absl::StrCat("there is no flow \"", target, "\""));
      job->Place(absl::StrCat("spec.dependencies[", job->spec().dependencies_size(), "]"), path);
      v1::JobDependency& dependency = *job->spec().add_dependencies();
      dependency.set_job(JobName(target));
      dependency.set_condition(v1::JobDependency::AFTER_OK);
    }
  }

  const volcano::v1::JobFlow& in_;
  ForeignDocument& document_;
  std::set<std::string> names_;
};

}  // namespace

void ReadVolcanoJobFlow(const YamlNode& node, ForeignFile* file) {
  ForeignDocument document(node, *file);
  volcano::v1::JobFlow in;
  document.Read(&in);
  if (in.metadata().name().empty()) document.Missing("metadata", "metadata.name");
  FlowConverter(in, document).Convert();
}

}  // namespace berth
