#include "clients/cli/apply.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/cli/command.h"
#include "clients/cli/plan.h"
#include "google/protobuf/util/message_differencer.h"
#include "support/text_file.h"
#include "support/visible.h"

namespace berth {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;
using JobStub = v1::JobService::StubInterface;
using QueueStub = v1::QueueService::StubInterface;
using HyperNodeStub = v1::HyperNodeService::StubInterface;
using PriorityClassStub = v1::PriorityClassService::StubInterface;

constexpr char kRootQueue[] = "root";
using Manifests = std::vector<const Manifest*>;

// The fields set in `wanted` that differ in `current`. `partial`: in nested messages, too, only the
// fields set in `wanted` are compared.
std::vector<std::string> Differences(const Message& wanted, const Message& current, bool partial) {
  std::vector<const FieldDescriptor*> set;
  wanted.GetReflection()->ListFields(wanted, &set);
  std::vector<std::string> names;
  for (const FieldDescriptor* field : set) {
    MessageDifferencer differencer;
    if (partial) differencer.set_scope(MessageDifferencer::PARTIAL);
    if (!differencer.CompareWithFields(wanted, current, {field}, {field}))
      names.push_back(field->name());
  }
  return names;
}

void Say(Session& session, const std::string& noun, const std::string& name,
         const std::string& verb) {
  const bool name_only = session.options.format == Format::kName;
  session.out() << noun << "/" << Visible(name) << (name_only ? "" : " " + verb) << "\n";
}

// "jobs[2].spec.groups[0].replicas" -> 2 and "spec.groups[0].replicas", with `list` "jobs"; false
// for other paths.
bool SplitPath(absl::string_view path, absl::string_view list, size_t* index,
               absl::string_view* rest) {
  if (!absl::ConsumePrefix(&path, list) || !absl::ConsumePrefix(&path, "[")) return false;
  const size_t end = path.find(']');
  if (end == absl::string_view::npos || !absl::SimpleAtoi(path.substr(0, end), index)) return false;
  *rest = path.substr(end + 1);
  absl::ConsumePrefix(rest, ".");
  return true;
}

// The path as written in a manifest, where the keys of the spec are at the top level.
std::string ManifestPath(absl::string_view path) {
  return std::string(absl::StripPrefix(path, "spec."));
}

// For a status that names its field only in the text, such as "jobs[0].spec.run_as: not allowed".
std::vector<Violation> ViolationOfText(const absl::Status& status) {
  const absl::string_view text = status.message();
  const size_t end = text.find(": ");
  if (!absl::StartsWith(text, "jobs[") || end == absl::string_view::npos) return {};
  const absl::string_view field = text.substr(0, end);
  if (absl::StrContains(field, " ")) return {};
  return {{std::string(field), std::string(text.substr(end + 2))}};
}

using LocateViolation = std::function<std::string(const Violation&)>;

ExitCode FinishLocated(Session& session, const absl::Status& status,
                       const LocateViolation& locate) {
  std::vector<Violation> violations = ViolationsOf(status);
  if (violations.empty()) violations = ViolationOfText(status);
  if (violations.empty()) return session.Finish(status);
  std::set<std::string> printed;  // all jobs of an array have the same errors
  for (const Violation& violation : violations) {
    const std::string line = Visible(locate(violation));
    if (printed.insert(line).second) session.err() << line << "\n";
  }
  return ExitCodeOf(status);
}

std::string LocateIn(const Manifest& manifest, absl::string_view path,
                     const std::string& description) {
  const std::string field = ManifestPath(path);
  return absl::StrCat(manifest.Locate(path), ": ", field, field.empty() ? "" : ": ", description);
}

ExitCode FinishQueue(Session& session, const absl::Status& status, const Manifest& manifest) {
  return FinishLocated(session, status, [&](const Violation& violation) {
    return LocateIn(manifest, absl::StripPrefix(violation.field, "queue."), violation.description);
  });
}

absl::Status CreateOrUpdate(Session& session, const v1::Queue& queue) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  v1::GetQueueRequest get;
  get.set_name(queue.name());
  const absl::StatusOr<v1::Queue> current = (*client)->Call(&QueueStub::GetQueue, get);
  if (absl::IsNotFound(current.status())) {
    v1::CreateQueueRequest create;
    *create.mutable_queue() = queue;
    const absl::Status status = (*client)->CreateQueue(create).status();
    if (status.ok()) Say(session, "queue", queue.name(), "created");
    return status;
  }
  if (!current.ok()) return current.status();
  v1::UpdateQueueRequest update;
  v1::QueueSpec wanted = queue.spec();
  const std::string& parent = current->spec().parent();
  if (wanted.parent() == kRootQueue && parent.empty()) wanted.clear_parent();  // both mean the root
  for (const std::string& name : Differences(wanted, current->spec(), false)) {
    update.mutable_update_mask()->add_paths("spec." + name);
  }
  const bool same = update.update_mask().paths().empty();
  *update.mutable_queue() = queue;
  update.mutable_queue()->set_etag(current->etag());
  const absl::Status status =
      same ? absl::OkStatus() : (*client)->Call(&QueueStub::UpdateQueue, update).status();
  if (status.ok()) Say(session, "queue", queue.name(), same ? "unchanged" : "updated");
  return status;
}

ExitCode FinishPriorityClass(Session& session, const absl::Status& status,
                             const Manifest& manifest) {
  return FinishLocated(session, status, [&](const Violation& violation) {
    const absl::string_view field = absl::StripPrefix(violation.field, "priority_class.");
    return LocateIn(manifest, field == "name" ? "name" : absl::StrCat("spec.", field),
                    violation.description);
  });
}

// Every field that the manifest leaves out gets its default.
absl::Status CreateOrUpdate(Session& session, const v1::PriorityClass& wanted) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  v1::GetPriorityClassRequest get;
  get.set_name(wanted.name());
  const absl::StatusOr<v1::PriorityClass> current =
      (*client)->Call(&PriorityClassStub::GetPriorityClass, get);
  if (absl::IsNotFound(current.status())) {
    v1::CreatePriorityClassRequest create;
    *create.mutable_priority_class() = wanted;
    const absl::Status status = (*client)->CreatePriorityClass(create).status();
    if (status.ok()) Say(session, "priority-class", wanted.name(), "created");
    return status;
  }
  if (!current.ok()) return current.status();
  v1::UpdatePriorityClassRequest update;
  *update.mutable_priority_class() = wanted;
  update.mutable_priority_class()->set_etag(current->etag());
  for (const char* field : {"value", "preemption_policy", "global_default", "description"}) {
    update.mutable_update_mask()->add_paths(field);
  }
  const absl::StatusOr<v1::PriorityClass> updated =
      (*client)->Call(&PriorityClassStub::UpdatePriorityClass, update);
  if (!updated.ok()) return updated.status();
  const bool same = updated->etag() == current->etag();
  Say(session, "priority-class", wanted.name(), same ? "unchanged" : "updated");
  return absl::OkStatus();
}

using SpecsByName = std::map<std::string, v1::HyperNodeSpec>;
constexpr size_t kMaxGetCalls = 16;

absl::StatusOr<SpecsByName> AllSpecs(Client& client) {
  SpecsByName all;
  const absl::Status status =
      client.List<HyperNodeStub, v1::ListHyperNodesRequest, v1::ListHyperNodesResponse>(
          &HyperNodeStub::ListHyperNodes, v1::ListHyperNodesRequest(),
          [&](const v1::ListHyperNodesResponse& page) {
            for (const v1::HyperNode& one : page.hyper_nodes()) all[one.name()] = one.spec();
            return true;
          });
  if (!status.ok()) return status;
  return all;
}

// The present specs of `wanted`, possibly among others. Missing HyperNodes are left out.
absl::StatusOr<SpecsByName> PresentSpecs(Session& session, Client& client,
                                         const Manifests& wanted) {
  if (wanted.size() > kMaxGetCalls) return AllSpecs(client);
  SpecsByName present;
  for (const Manifest* manifest : wanted) {
    v1::GetHyperNodeRequest request;
    request.set_name(manifest->name());
    const absl::StatusOr<v1::HyperNode> found = session.Call(&HyperNodeStub::GetHyperNode, request);
    if (found.ok()) present[manifest->name()] = found->spec();
    if (!found.ok() && !absl::IsNotFound(found.status())) return found.status();
  }
  return present;
}

// The spec as the server would store it, with defaults filled in.
v1::HyperNodeSpec Completed(v1::HyperNodeSpec spec) {
  if (spec.kind().empty()) spec.set_kind("network");
  if (spec.health() == v1::HyperNodeSpec::HEALTH_UNSPECIFIED)
    spec.set_health(v1::HyperNodeSpec::OK);
  return spec;
}

ExitCode FinishHyperNodes(Session& session, const absl::Status& status, const Manifests& wanted) {
  return FinishLocated(session, status, [&](const Violation& violation) {
    size_t index = 0;
    absl::string_view rest = violation.field;
    const bool known =
        SplitPath(violation.field, "hyper_nodes", &index, &rest) && index < wanted.size();
    if (known) return LocateIn(*wanted[index], rest, violation.description);
    return absl::StrCat("berth: ", rest, ": ", violation.description);
  });
}

ExitCode ApplyTree(Session& session, const Manifests& wanted, bool dry_run) {
  if (wanted.empty()) return ExitCode::kOk;
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return session.Finish(client.status());
  const auto present = PresentSpecs(session, **client, wanted);
  if (!present.ok()) return session.Finish(present.status());
  v1::ApplyHyperNodesRequest request;
  request.set_validate_only(dry_run);
  for (const Manifest* manifest : wanted) *request.add_hyper_nodes() = manifest->hyper_node;
  const absl::Status status = (*client)->ApplyHyperNodes(request).status();
  if (!status.ok()) return FinishHyperNodes(session, status, wanted);
  for (const Manifest* manifest : wanted) {
    const auto before = present->find(manifest->name());
    const bool same =
        before != present->end() &&
        MessageDifferencer::Equals(before->second, Completed(manifest->hyper_node.spec()));
    const char* verb = before == present->end() ? "created" : (same ? "unchanged" : "updated");
    Say(session, "hypernode", manifest->name(), absl::StrCat(verb, dry_run ? " (dry run)" : ""));
  }
  return ExitCode::kOk;
}

absl::StatusOr<v1::SubmitJobsResponse> Submit(Session& session, const Manifests& jobs,
                                              const SubmitOptions& options) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  v1::SubmitJobsRequest request;
  request.set_dry_run(options.dry_run);
  request.set_request_id(options.request_id);
  request.set_on_behalf_of(options.on_behalf_of);
  for (const Manifest* job : jobs) *request.add_jobs() = job->job;
  return (*client)->Submit(request);
}

std::string NameOrUnknown(const std::string& name) { return name.empty() ? "?" : name; }

// Warns about jobs that can never start on the cluster as it is.
void WarnAboutUnstartable(Session& session, const v1::SubmitJobsResponse& response) {
  for (const auto& job : response.jobs()) {
    if (!job.has_never()) continue;
    session.Warn(absl::StrCat("job/", NameOrUnknown(job.name()), " ", HumanReason(job.never())));
  }
}

// A job that exists: unchanged, updated or refused.
ExitCode ApplyToExisting(Session& session, const Manifest& manifest, const v1::Job& current) {
  static const std::set<std::string> kMayChange = {"priority", "labels", "walltime"};
  const std::vector<std::string> differences =
      Differences(manifest.job.spec(), current.spec(), true);
  if (differences.empty()) {
    Say(session, "job", current.name(), "unchanged");
    return ExitCode::kOk;
  }
  v1::UpdateJobRequest request;
  for (const std::string& name : differences) {
    if (kMayChange.count(name) == 0) {
      session.err() << manifest.Locate("spec." + name) << ": job/" << Visible(current.name())
                    << " exists and differs in " << absl::StrJoin(differences, ", ")
                    << "; only priority, labels and walltime may change\n";
      return ExitCode::kRefused;
    }
    request.mutable_update_mask()->add_paths("spec." + name);
  }
  *request.mutable_job() = manifest.job;
  request.mutable_job()->set_etag(current.etag());
  const absl::Status status = session.Call(&JobStub::UpdateJob, request).status();
  if (status.ok()) Say(session, "job", current.name(), "updated");
  return FinishSubmit(session, status, {&manifest});
}

// Applies the jobs that exist, and collects the others in `missing`.
ExitCode ApplyExisting(Session& session, const Manifests& jobs, Manifests* missing) {
  ExitCode first = ExitCode::kOk;
  for (const Manifest* manifest : jobs) {
    v1::GetJobRequest request;
    request.set_name(manifest->name());
    const absl::StatusOr<v1::Job> current = manifest->name().empty()
                                                ? absl::NotFoundError("")
                                                : session.Call(&JobStub::GetJob, request);
    if (absl::IsNotFound(current.status())) {
      missing->push_back(manifest);
      continue;
    }
    const ExitCode code = current.ok() ? ApplyToExisting(session, *manifest, *current)
                                       : session.Finish(current.status());
    if (first == ExitCode::kOk) first = code;
  }
  return first;
}

bool HasObject(const Session& session) {
  return session.options.format == Format::kJson || session.options.format == Format::kYaml;
}

// Prints a line for each job. The output of -o json and yaml follows when all jobs are done.
void ReportSubmitted(Session& session, const Manifests& jobs, const SubmitOptions& options,
                     const v1::SubmitJobsResponse& response) {
  if (options.dry_run && options.print_manifests) {
    for (const Manifest* job : jobs) session.NextDocument() << WriteManifest(job->job);
  } else if (options.dry_run && !HasObject(session)) {
    for (const Manifest* job : jobs)
      Say(session, "job", NameOrUnknown(job->name()), "would be accepted (dry run)");
  } else if (!HasObject(session)) {
    for (const auto& job : response.jobs()) Say(session, "job", job.name(), "submitted");
  }
  WarnAboutUnstartable(session, response);
}

// Adds the response of the server to `all`.
ExitCode SubmitAndReport(Session& session, const Manifests& jobs, const SubmitOptions& options,
                         v1::SubmitJobsResponse* all) {
  if (jobs.empty()) return ExitCode::kOk;
  const absl::StatusOr<v1::SubmitJobsResponse> response = Submit(session, jobs, options);
  if (!response.ok()) return FinishSubmit(session, response.status(), jobs);
  ReportSubmitted(session, jobs, options, *response);
  all->MergeFrom(*response);
  return ExitCode::kOk;
}

void PrintSubmitted(Session& session, const v1::SubmitJobsResponse& all) {
  if (!HasObject(session) || all.jobs().empty()) return;
  const bool json = session.options.format == Format::kJson;
  session.NextDocument() << (json ? JsonOf(all) + "\n" : YamlOf(all));
}

ExitCode ApplyJobs(Session& session, const Manifests& jobs) {
  const absl::StatusOr<v1::SubmitJobsResponse> response = Submit(session, jobs, SubmitOptions());
  if (response.ok()) {
    ReportSubmitted(session, jobs, SubmitOptions(), *response);
    return ExitCode::kOk;
  }
  if (!absl::IsAlreadyExists(response.status()))
    return FinishSubmit(session, response.status(), jobs);
  Manifests missing;
  v1::SubmitJobsResponse all;
  const ExitCode existing = ApplyExisting(session, jobs, &missing);
  const ExitCode submitted = SubmitAndReport(session, missing, SubmitOptions(), &all);
  return existing == ExitCode::kOk ? submitted : existing;
}

// Calls `each` with at most kJobsPerCall jobs at a time, until it fails.
ExitCode InChunks(const Manifests& jobs, const std::function<ExitCode(const Manifests&)>& each) {
  for (size_t at = 0; at < jobs.size(); at += kJobsPerCall) {
    const size_t end = std::min(jobs.size(), at + kJobsPerCall);
    const ExitCode code = each(Manifests(jobs.begin() + static_cast<std::ptrdiff_t>(at),
                                         jobs.begin() + static_cast<std::ptrdiff_t>(end)));
    if (code != ExitCode::kOk) return code;
  }
  return ExitCode::kOk;
}

}  // namespace

ExitCode FinishSubmit(Session& session, const absl::Status& status, const Manifests& jobs) {
  return FinishLocated(session, status, [&](const Violation& violation) {
    size_t index = 0;
    absl::string_view rest = violation.field;
    if (!SplitPath(violation.field, "jobs", &index, &rest)) {
      absl::ConsumePrefix(&rest, "job.");  // UpdateJob's paths
    }
    const bool known = index < jobs.size() && !jobs[index]->file.empty();
    if (known) return LocateIn(*jobs[index], rest, violation.description);
    const std::string option = index < jobs.size() ? jobs[index]->Option(rest) : "";
    return absl::StrCat("berth: ", option.empty() ? ManifestPath(rest) : option, ": ",
                        violation.description);
  });
}

absl::StatusOr<std::vector<Manifest>> ReadManifestFiles(Session& session,
                                                        const std::vector<std::string>& files,
                                                        const ManifestOptions& options) {
  std::vector<Manifest> all;
  std::vector<std::string> problems;
  for (const std::string& file : files) {
    const absl::StatusOr<std::string> text = ReadTextFile(file);
    std::vector<std::string> warnings;
    auto manifests = text.ok()
                         ? ReadManifests(*text, file == "-" ? "stdin" : file, options, &warnings)
                         : text.status();
    for (const std::string& warning : warnings) session.Warn(warning);
    if (!manifests.ok()) {
      problems.emplace_back(manifests.status().message());
      continue;
    }
    std::move(manifests->begin(), manifests->end(), std::back_inserter(all));
  }
  if (!problems.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  if (all.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(absl::StrJoin(files, ", "), ": contains no manifest"));
  return all;
}

ExitCode FinishReading(Session& session, const absl::Status& status) {
  if (status.ok()) return ExitCode::kOk;
  for (absl::string_view line : absl::StrSplit(status.message(), '\n'))
    session.err() << Visible(line) << "\n";
  return ExitCodeOf(status);
}

ExitCode ApplyManifests(Session& session, const std::vector<Manifest>& manifests) {
  session.exact_answers = true;
  Manifests jobs, hyper_nodes;
  for (const Manifest& manifest : manifests) {
    if (manifest.kind == Manifest::Kind::kHyperNode) hyper_nodes.push_back(&manifest);
  }
  const ExitCode tree = ApplyTree(session, hyper_nodes, false);
  if (tree != ExitCode::kOk) return tree;
  for (const Manifest& manifest : manifests) {
    if (manifest.kind == Manifest::Kind::kHyperNode) continue;
    if (manifest.kind == Manifest::Kind::kJob) {
      jobs.push_back(&manifest);
      continue;
    }
    const bool is_class = manifest.kind == Manifest::Kind::kPriorityClass;
    const ExitCode code =
        is_class ? FinishPriorityClass(session, CreateOrUpdate(session, manifest.priority_class),
                                       manifest)
                 : FinishQueue(session, CreateOrUpdate(session, manifest.queue), manifest);
    if (code != ExitCode::kOk) return code;  // later manifests may need this
  }
  return InChunks(jobs, [&](const Manifests& chunk) { return ApplyJobs(session, chunk); });
}

ExitCode ApplyHyperNodes(Session& session, const std::vector<Manifest>& manifests, bool dry_run) {
  session.exact_answers = true;
  Manifests wanted;
  for (const Manifest& manifest : manifests) {
    if (manifest.kind == Manifest::Kind::kHyperNode) {
      wanted.push_back(&manifest);
      continue;
    }
    session.err() << manifest.Locate("") << ": not a HyperNode; use berth apply -f\n";
    return ExitCode::kInvalid;
  }
  return ApplyTree(session, wanted, dry_run);
}

ExitCode SubmitManifests(Session& session, const std::vector<Manifest>& jobs,
                         const SubmitOptions& options, std::vector<std::string>* names) {
  Manifests pointers;
  for (const Manifest& job : jobs) {
    if (job.kind == Manifest::Kind::kJob) {
      pointers.push_back(&job);
      continue;
    }
    session.err() << job.Locate("")
                  << ": only jobs can be submitted; use berth apply -f for other kinds\n";
    return ExitCode::kInvalid;
  }
  const bool prints = options.dry_run && options.print_manifests;
  if (options.dry_run && !prints && pointers.size() == 1)
    return PlanManifest(session, *pointers.front());
  v1::SubmitJobsResponse all;
  const ExitCode code = InChunks(pointers, [&](const Manifests& chunk) {
    return SubmitAndReport(session, chunk, options, &all);
  });
  if (!prints) PrintSubmitted(session, all);
  for (const auto& job : all.jobs()) {
    if (!options.dry_run) names->push_back(job.name());
  }
  return code;
}

}  // namespace berth
