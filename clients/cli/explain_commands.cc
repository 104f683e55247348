#include "clients/cli/explain_commands.h"

#include <memory>

#include "clients/cli/apply.h"
#include "clients/cli/by_name.h"
#include "clients/cli/explain_view.h"
#include "clients/cli/plan.h"

namespace berth {
namespace {

using ExplainStub = v1::ExplainService::StubInterface;

// One call for each name. Prints a document with -o json or yaml, otherwise `text(answer)`.
template <class Request, class Response, class Text>
ExitCode AskByName(Session& session, const Names& names,
                   grpc::Status (ExplainStub::*method)(grpc::ClientContext*, const Request&,
                                                       Response*),
                   const Text& text) {
  bool first = true;
  return ForEachName(session, names, [&](const std::string& name) {
    Request request;
    request.set_job(name);
    const absl::StatusOr<Response> answer = session.Call(method, request);
    if (!answer.ok()) return answer.status();
    const bool later = !std::exchange(first, false);
    switch (session.options.format) {
      case Format::kJson:
        session.out() << JsonOf(*answer) << "\n";
        break;
      case Format::kYaml:
        session.NextDocument() << YamlOf(*answer);
        break;
      case Format::kName:
        session.out() << "job/" << name << "\n";
        break;
      default:
        session.out() << (later ? "\n" : "") << text(name, *answer);
    }
    return absl::OkStatus();
  });
}

// Plans each job as if it were submitted alone.
ExitCode PlanFiles(Session& session, const Names& files, const ManifestOptions& options) {
  const auto manifests = ReadManifestFiles(session, files, options);
  if (!manifests.ok()) return FinishReading(session, manifests.status());
  for (const Manifest& manifest : *manifests) {
    if (manifest.kind == Manifest::Kind::kJob) continue;
    session.err() << manifest.Locate("") << ": only jobs can be planned\n";
    return ExitCode::kInvalid;
  }
  ExitCode first = ExitCode::kOk;
  for (const Manifest& manifest : *manifests) {
    const ExitCode code = PlanManifest(session, manifest);
    if (first == ExitCode::kOk) first = code;
  }
  return first;
}

void AddPlan(CLI::App& noun, Session& session) {
  auto files = std::make_shared<Names>();
  auto ignored = std::make_shared<Names>();
  CLI::App* plan = AddCommand(noun, session, "plan",
                              "show where the jobs of manifests would run, each submitted alone",
                              [=](Session& s) {
                                ManifestOptions options;
                                options.ignored.insert(ignored->begin(), ignored->end());
                                return PlanFiles(s, *files, options);
                              });
  plan->add_option("--file,-f", *files, "manifests; - is standard input")->required();
  plan->add_option(
          "--ignore", *ignored,
          "ignore this key of other schedulers' manifests, with a warning; may be repeated")
      ->delimiter(',')
      ->allow_extra_args(false);
}

}  // namespace

void AddExplainCommands(CLI::App& noun, Session& session) {
  AddNames(noun, session, "explain", "show why jobs are pending, and what would start them",
           [](Session& s, const Names& names) {
             return AskByName(s, names, &ExplainStub::ExplainJob,
                              [&](const std::string&, const v1::ExplainJobResponse& answer) {
                                return ExplanationText(answer, s);
                              });
           });
  AddNames(noun, session, "estimate", "estimate when pending jobs will start",
           [](Session& s, const Names& names) {
             return AskByName(s, names, &ExplainStub::EstimateJob,
                              [&](const std::string& name, const v1::EstimateJobResponse& answer) {
                                return EstimateText(name, answer, s);
                              });
           });
  AddPlan(noun, session);
}

}  // namespace berth
