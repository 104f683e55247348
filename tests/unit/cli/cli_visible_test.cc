// No text of a server reaches the terminal if it could move a cursor, start a new line, or change
// the direction of text.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/unit/cli/cli_harness.h"
#include "tests/unit/filled_message.h"

namespace berth {
namespace {

template <class Answer>
Answer Filled() {
  return FilledWith<Answer>(kNasty);
}

void CheckHarmless(const std::string& text) {
  CAPTURE(text);
  CHECK(IsHarmless(text));
}

void Answers(Script& script) {
  script.Answer("ListJobs", Filled<v1::ListJobsResponse>());
  script.Answer("GetJob", Filled<v1::Job>());
  script.Answer("ListTasks", Filled<v1::ListTasksResponse>());
  script.Answer("CancelJob", Filled<v1::Job>());
  script.Answer("ListNodes", Filled<v1::ListNodesResponse>());
  script.Answer("GetNode", Filled<v1::Node>());
  script.Answer("ListQueues", Filled<v1::ListQueuesResponse>());
  script.Answer("GetQueue", Filled<v1::Queue>());
  script.Answer("GetClusterInfo", Filled<v1::ClusterInfo>());
  script.Answer("ListHyperNodes", Filled<v1::ListHyperNodesResponse>());
  script.Answer("ExplainJob", Filled<v1::ExplainJobResponse>());
  script.Answer("EstimateJob", Filled<v1::EstimateJobResponse>());
  script.Answer("ListQueueShares", Filled<v1::ListQueueSharesResponse>());
  script.Answer("GetHyperNode", Filled<v1::HyperNode>());
  script.Answer("SubmitJobs", Filled<v1::SubmitJobsResponse>());
  script.Answer("PlanJob", Filled<v1::PlanJobResponse>());
  script.Answer("UpdateJob", Filled<v1::Job>());
  script.Answer("GetUsage", Filled<v1::GetUsageResponse>());
  script.Answer("ListEndedJobs", Filled<v1::ListEndedJobsResponse>());
}

const std::vector<std::vector<std::string>> kCommands = {{"job", "list"},
                                                         {"job", "get", "x"},
                                                         {"job", "describe", "x"},
                                                         {"job", "explain", "x"},
                                                         {"job", "estimate", "x"},
                                                         {"queue", "shares"},
                                                         {"topology", "show"},
                                                         {"usage", "--by=queue,user,account"},
                                                         {"job", "ended"},
                                                         {"job", "tasks", "x"},
                                                         {"job", "cancel", "x"},
                                                         {"node", "list"},
                                                         {"node", "get", "x"},
                                                         {"node", "describe", "x"},
                                                         {"queue", "list"},
                                                         {"queue", "get", "x"},
                                                         {"queue", "describe", "x"},
                                                         {"cluster", "info"},
                                                         {"hypernode", "list"},
                                                         {"hypernode", "get", "x"},
                                                         {"hypernode", "describe", "x"}};

}  // namespace

TEST_CASE("no answer of a server reaches a terminal unescaped") {
  Cli cli;
  Answers(cli.script);
  for (const char* format : {"table", "wide", "name", "json", "yaml", "csv"}) {
    for (const std::vector<std::string>& command : kCommands) {
      std::vector<std::string> line = command;
      line.insert(line.end(), {"-o", format});
      INFO(command[0] << " " << command[1] << " -o " << format);
      cli.Run(line);
      CHECK_FALSE((cli.out() + cli.err()).empty());
      CheckHarmless(cli.out());
      CheckHarmless(cli.err());
    }
  }
}

TEST_CASE("errors of a server reach a terminal as text of one line") {
  Cli cli;
  cli.script.Answer("GetJob", absl::NotFoundError(kNasty));
  CHECK(cli.Run({"job", "get", "x"}) == 3);
  CheckHarmless(cli.err());
  cli.script.Answer("ListNodes", ViolationsError(absl::StatusCode::kInvalidArgument,
                                                 {{std::string("f") + kNasty, kNasty}}));
  cli.Run({"node", "list"});
  CHECK_FALSE(cli.err().empty());
  CheckHarmless(cli.err());
}

namespace {

// With hostile text in every answer, in all formats.
void CheckAll(const std::vector<std::vector<std::string>>& commands,
              const std::vector<std::string>& formats) {
  for (const std::string& format : formats) {
    for (const std::vector<std::string>& command : commands) {
      Cli cli;
      Answers(cli.script);
      cli.script.Stream<v1::WatchResponse>("Watch", {Filled<v1::WatchResponse>()},
                                           absl::PermissionDeniedError(kNasty));
      std::vector<std::string> line = command;
      if (!format.empty()) line.insert(line.end(), {"-o", format});
      INFO(command[0] << " " << command[1] << " -o " << format);
      cli.Run(line);
      CHECK_FALSE((cli.out() + cli.err()).empty());
      CheckHarmless(cli.out());
      CheckHarmless(cli.err());
    }
  }
}

constexpr char kManifest[] = R"(apiVersion: berth/v1
kind: Job
name: x
groups: [{name: w, replicas: 1, command: [train]}]
)";

}  // namespace

TEST_CASE("output of submit, wait, watch and history reaches a terminal as text") {
  const TempFile one(kManifest), two(std::string(kManifest) + "---\n" + kManifest);
  CheckAll({{"submit", one.path()},
            {"submit", one.path(), "--wait"},
            {"submit", one.path(), "--dry-run"},
            {"submit", two.path(), "--dry-run"},
            {"job", "plan", "-f", one.path()},
            {"job", "wait", "x"},
            {"job", "update", "x", "--label", "a=b"}},
           {"table", "wide", "name", "json", "yaml"});
  CheckAll({{"apply", "-f", one.path()}}, {"table", "name"});
  CheckAll({{"job", "watch", "x"}}, {"table"});
  CheckAll({{"job", "watch"}}, {"table", "json"});
  CheckAll({{"job", "history"}}, {"", "json"});
}

TEST_CASE("job history keeps the messages of jobs") {
  Cli cli;
  v1::ListJobsResponse jobs;
  *jobs.add_jobs() = MakeJob("x", v1::JOB_FAILED);
  jobs.mutable_jobs(0)->mutable_status()->set_message("a\tb");
  cli.script.Answer("ListJobs", jobs);
  CHECK(cli.Run({"job", "history"}) == 0);
  CHECK(cli.out().find("\"a\\tb\"") != std::string::npos);
}

TEST_CASE("errors in a manifest reach a terminal on separate lines") {
  const TempFile good(kManifest);
  const TempFile bad("apiVersion: berth/v1\nkind: Job\n\"x\\e[2J\\nFORGED\\u202e\": 1\n");
  for (const char* verb : {"submit", "apply"}) {
    Cli cli;
    std::vector<std::string> line = {verb};
    if (line[0] == "apply") line.push_back("-f");
    std::vector<std::string> wrong = line;
    wrong.push_back(bad.path());
    CHECK(cli.Run(wrong) == 4);
    CHECK(cli.err().find("FORGED") != std::string::npos);
    CheckHarmless(cli.err());
    for (const absl::StatusCode code :
         {absl::StatusCode::kInvalidArgument, absl::StatusCode::kAlreadyExists}) {
      Answers(cli.script);
      cli.script.Answer("SubmitJobs",
                        ViolationsError(code, {{std::string("jobs[0].spec.") + kNasty, kNasty}}));
    }
    std::vector<std::string> refused = line;
    refused.push_back(good.path());
    for (int i = 0; i < 4; ++i) {
      cli.Run(refused);
      CHECK_FALSE((cli.out() + cli.err()).empty());
      CheckHarmless(cli.out());
      CheckHarmless(cli.err());
    }
  }
}

}  // namespace berth
