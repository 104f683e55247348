// Every command either supports a format of -o or refuses it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "absl/strings/str_split.h"
#include "clients/cli/command.h"
#include "clients/cli/output_formats.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "support/yaml_tree.h"
#include "tests/unit/cli/cli_harness.h"
#include "tests/unit/filled_message.h"

namespace berth {
namespace {

using Words = std::vector<std::string>;

constexpr char kJob[] = R"(apiVersion: berth/v1
kind: Job
name: x
groups: [{name: w, replicas: 1, command: [train]}]
)";
constexpr char kHyperNode[] = R"(apiVersion: berth/v1
kind: HyperNode
name: r1
tier: 1
members: [{type: NODE, exact: n1}]
)";

// The input files of the commands, removed after the test.
struct Files {
  TempFile job{kJob};
  TempFile jobs{std::string(kJob) + "---\n" + kJob};
  TempFile hyper_node{kHyperNode};
  TempFile slurm{"SwitchName=s1 Nodes=n[1-2]\n"};
};

// One line for each command, by its name; several if different code prints the format.
std::multimap<std::string, Words> Lines(const Files& files) {
  std::multimap<std::string, Words> lines = {
      {"apply", {"apply", "-f", files.job.path()}},
      {"submit", {"submit", files.job.path()}},
      {"submit", {"submit", files.jobs.path()}},
      {"submit", {"submit", "--dry-run", files.job.path()}},
      {"submit", {"submit", "--dry-run", files.jobs.path()}},
      {"submit", {"submit", "--name", "a", "--dry-run", "train"}},
      {"submit", {"submit", "--name", "a", "--array", "0-2", "--dry-run", "train"}},
      {"submit", {"submit", "--name", "a", "--array", "0-2", "train"}},
      {"exec", {"exec", "x", "true"}},
      {"run", {"run", "--detach", "--image", "x"}},
      {"attach", {"attach", "x"}},
      {"port-forward", {"port-forward", "x", "80"}},
      {"cp", {"cp", "x:y", "z"}},
      {"version", {"version"}},
      {"login", {"login"}},
      {"logout", {"logout"}},
      {"man", {"man"}},
      {"migrate slurm", {"migrate", "slurm", "--conf", "x", "--output-directory", "y"}},
      {"completion bash", {"completion", "bash"}},
      {"completion zsh", {"completion", "zsh"}},
      {"completion fish", {"completion", "fish"}},
      {"job plan", {"job", "plan", "-f", files.job.path()}},
      {"job plan", {"job", "plan", "-f", files.jobs.path()}},
      {"job exec", {"job", "exec", "x", "true"}},
      {"job update", {"job", "update", "x", "y", "--priority", "1"}},
      {"queue update", {"queue", "update", "x", "--weight", "2"}},
      {"hypernode apply", {"hypernode", "apply", "-f", files.hyper_node.path()}},
      {"topology import", {"topology", "import", "--from", "slurm-conf", files.slurm.path()}},
      {"node token create", {"node", "token", "create", "--node", "x"}},
      {"node token list", {"node", "token", "list"}},
      {"node token revoke", {"node", "token", "revoke", "x"}},
      {"whoami", {"whoami"}},
      {"access list", {"access", "list"}},
      {"access roles", {"access", "roles"}},
      {"access check", {"access", "check", "job.list"}},
      {"access grant", {"access", "grant", "viewer", "--user", "x"}},
      {"access revoke", {"access", "revoke", "viewer", "--everyone"}},
      {"access init", {"access", "init"}},
      {"access set-role", {"access", "set-role", "x", "job.list"}},
      {"access delete-role", {"access", "delete-role", "x"}},
      {"access refuse", {"access", "refuse", "--node", "x"}},
      {"access readmit", {"access", "readmit", "--serial", "1f"}},
      {"audit", {"audit"}},
      {"usage", {"usage", "--by", "queue,user,account,class,model", "--step", "day"}},
      {"cluster usage", {"cluster", "usage", "--by-model"}},
      {"job ended", {"job", "ended"}},
  };
  for (const char* alone :
       {"job list", "job history", "job watch", "queue list", "queue shares", "node list",
        "hypernode list", "priority-class list", "topology show", "cluster info", "cluster reload",
        "cluster finalize", "cluster backup", "cluster pause", "cluster resume", "cluster members",
        "cluster handover", "cluster etcd-repair"}) {
    const std::string command = alone;
    const size_t blank = command.find(' ');
    lines.insert({command, {command.substr(0, blank), command.substr(blank + 1)}});
  }
  for (const char* named : {"job get",           "job describe",       "job explain",
                            "job estimate",      "job tasks",          "job logs",
                            "job wait",          "job cancel",         "job suspend",
                            "job resume",        "job requeue",        "job delete",
                            "queue get",         "queue describe",     "queue create",
                            "queue open",        "queue close",        "queue delete",
                            "node get",          "node describe",      "node tasks",
                            "node cordon",       "node drain",         "node uncordon",
                            "node delete",       "hypernode get",      "hypernode describe",
                            "hypernode create",  "hypernode update",   "hypernode delete",
                            "topology describe", "priority-class get", "priority-class delete"}) {
    const std::string command = named;
    const size_t blank = command.find(' ');
    lines.insert({command, {command.substr(0, blank), command.substr(blank + 1), "x"}});
  }
  return lines;
}

void AddLeaves(const CLI::App& app, const std::string& name, Words* leaves) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  if (commands.empty()) leaves->push_back(name);
  for (const CLI::App* command : commands) {
    AddLeaves(*command, name + (name.empty() ? "" : " ") + command->get_name(), leaves);
  }
}

// Names as "job list".
Words Commands() {
  Cli cli;
  std::ostringstream out, err;
  Session session({out, err, false, false, absl::UTCTimeZone(), cli.world.environment()});
  CLI::App app("", "berth");
  AddAllCommands(app, session, {});
  Words leaves;
  AddLeaves(app, "", &leaves);
  return leaves;
}

template <class Answer>
Answer Filled() {
  return FilledWith<Answer>("x");
}

void Answers(Script& script) {
  script.Answer("ListJobs", Filled<v1::ListJobsResponse>());
  script.Answer("SubmitJobs", Filled<v1::SubmitJobsResponse>());
  script.Answer("PlanJob", Filled<v1::PlanJobResponse>());
  for (const char* method :
       {"GetJob", "UpdateJob", "CancelJob", "SuspendJob", "ResumeJob", "RequeueJob"})
    script.Answer(method, Filled<v1::Job>());
  script.Answer("ListPriorityClasses", Filled<v1::ListPriorityClassesResponse>());
  script.Answer("GetPriorityClass", Filled<v1::PriorityClass>());
  script.Answer("DeletePriorityClass", v1::DeletePriorityClassResponse());
  script.Answer("DeleteJob", v1::DeleteJobResponse());
  script.Answer("ListTasks", Filled<v1::ListTasksResponse>());
  script.Answer("ExplainJob", Filled<v1::ExplainJobResponse>());
  script.Answer("EstimateJob", Filled<v1::EstimateJobResponse>());
  script.Answer("ListQueues", Filled<v1::ListQueuesResponse>());
  for (const char* method : {"GetQueue", "CreateQueue", "UpdateQueue", "OpenQueue", "CloseQueue"})
    script.Answer(method, Filled<v1::Queue>());
  script.Answer("DeleteQueue", v1::DeleteQueueResponse());
  script.Answer("ListQueueShares", Filled<v1::ListQueueSharesResponse>());
  script.Answer("ListNodes", Filled<v1::ListNodesResponse>());
  for (const char* method : {"GetNode", "CordonNode", "DrainNode", "UncordonNode"})
    script.Answer(method, Filled<v1::Node>());
  script.Answer("DeleteNode", v1::DeleteNodeResponse());
  script.Answer("CreateJoinToken", Filled<v1::CreateJoinTokenResponse>());
  script.Answer("ListJoinTokens", Filled<v1::ListJoinTokensResponse>());
  script.Answer("RevokeJoinToken", v1::RevokeJoinTokenResponse());
  script.Answer("ListHyperNodes", Filled<v1::ListHyperNodesResponse>());
  for (const char* method : {"GetHyperNode", "CreateHyperNode", "UpdateHyperNode"})
    script.Answer(method, Filled<v1::HyperNode>());
  script.Answer("DeleteHyperNode", v1::DeleteHyperNodeResponse());
  script.Answer("ApplyHyperNodes", Filled<v1::ApplyHyperNodesResponse>());
  script.Answer("GetClusterInfo", Filled<v1::ClusterInfo>());
  v1::WhoAmIResponse who = Filled<v1::WhoAmIResponse>();
  who.set_enforced(false);
  script.Answer("WhoAmI", who);
  script.Answer("GetAccess", Filled<v1::AccessRules>());
  script.Answer("ChangeAccess", v1::ChangeAccessResponse());
  script.Answer("CheckAccess", Filled<v1::CheckAccessResponse>());
  script.Answer("ListAudit", Filled<v1::ListAuditResponse>());
  script.Answer("GetUsage", Filled<v1::GetUsageResponse>());
  script.Answer("GetCapacity", Filled<v1::GetCapacityResponse>());
  script.Answer("ListEndedJobs", Filled<v1::ListEndedJobsResponse>());
  script.Answer("ReloadConfig", Filled<v1::ReloadConfigResponse>());
  script.Answer("FinalizeUpgrade", Filled<v1::FinalizeUpgradeResponse>());
  script.Answer("ListMembers", Filled<v1::ListMembersResponse>());
  script.Answer("HandOver", Filled<v1::HandOverResponse>());
  script.Answer("RepairEtcd", Filled<v1::RepairEtcdResponse>());
  script.Answer("Backup", Filled<v1::BackupResponse>());
  script.Answer("PauseCluster", Filled<v1::PauseClusterResponse>());
  script.Answer("ResumeCluster", v1::ResumeClusterResponse());
  script.Stream<v1::WatchResponse>("Watch", {Filled<v1::WatchResponse>()},
                                   absl::PermissionDeniedError("enough"));
}

// One value, or one for each job of `job update x y`.
bool IsJson(const std::string& text) {
  google::protobuf::Value value;
  if (google::protobuf::util::JsonStringToMessage(text, &value).ok()) return true;
  const size_t second = text.find("\n{");
  return second != std::string::npos && IsJson(text.substr(0, second + 1)) &&
         IsJson(text.substr(second + 1));
}

bool IsYaml(const std::string& text) {
  YamlErrors errors("out");
  const std::vector<YamlNode> documents = ParseYamlTree(text, &errors);
  if (!errors.empty() || documents.empty() || text[0] == '{') return false;
  return std::all_of(documents.begin(), documents.end(),
                     [](const YamlNode& one) { return one.is_map(); });
}

// One word a line.
bool IsNames(const std::string& text) {
  return text.find(' ') == std::string::npos && text.find("\n\n") == std::string::npos &&
         !text.empty() && text[0] != '{' && text.find(':') == std::string::npos;
}

// Lines with as many commas as the first.
bool IsCsv(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (lines.size() < 2) return false;
  const auto commas = [](const std::string& line) {
    return std::count(line.begin(), line.end(), ',');
  };
  return commas(lines[0]) > 2 &&
         std::all_of(lines.begin(), lines.end(), [&](const std::string& line) {
           return commas(line) == commas(lines[0]) && line.find(' ') == std::string::npos;
         });
}

bool HasForm(const std::string& text, Format format) {
  switch (format) {
    case Format::kJson:
      return IsJson(text);
    case Format::kYaml:
      return IsYaml(text);
    case Format::kName:
      return IsNames(text);
    case Format::kCsv:
      return IsCsv(text);
    default:
      return text.find(' ') != std::string::npos && text[0] != '{';
  }
}

const std::map<std::string, Format> kFormats = {{"table", Format::kTable}, {"wide", Format::kWide},
                                                {"json", Format::kJson},   {"yaml", Format::kYaml},
                                                {"name", Format::kName},   {"csv", Format::kCsv}};

// Puts "--" before "train" and "true".
Words WithDashes(Words line) {
  if (line.back() == "train" || line.back() == "true") line.insert(line.end() - 1, "--");
  return line;
}

void CheckLine(const std::string& command, const Words& words, const std::string& name,
               Format format) {
  Cli cli;
  Answers(cli.script);
  Words line = {"-o", name};
  line.insert(line.end(), words.begin(), words.end());
  const int code = cli.Run(WithDashes(line));
  INFO(command << " -o " << name << ": " << code << "\n" << cli.out() << "\n" << cli.err());
  const std::vector<Format>& formats = *FormatsOf(command);
  if (std::find(formats.begin(), formats.end(), format) == formats.end()) {
    CHECK(code == 2);
    CHECK(cli.err().find(command + " does not support -o " + name) != std::string::npos);
    CHECK(cli.out().empty());
  } else {
    CHECK(code != 2);
    // A token alone, for `> FILE`.
    const bool one_word = command == "node token create" && format == Format::kTable;
    CHECK((one_word ? cli.out() == "x\n" : HasForm(cli.out(), format)));
  }
}

}  // namespace

TEST_CASE("every command supports a format of -o, or refuses it") {
  const Files files;
  const auto lines = Lines(files);
  const Words commands = Commands();
  CHECK(commands.size() > 50);
  for (const std::string& command : commands) {
    INFO(command);
    CHECK(FormatsOf(command) != nullptr);
    CHECK(lines.count(command) > 0);
  }
  for (const auto& [command, words] : lines) {
    INFO(command);
    REQUIRE(std::find(commands.begin(), commands.end(), command) != commands.end());
    for (const auto& [name, format] : kFormats) CheckLine(command, words, name, format);
  }
}

TEST_CASE("YAML documents are separated in the output of every command") {
  Cli cli;
  Answers(cli.script);
  CHECK(cli.Run({"job", "cancel", "x", "y", "-o", "yaml"}) == 0);
  CHECK(cli.out().find("\n---\n") != std::string::npos);
  const Files files;
  CHECK(cli.Run({"submit", "--wait", files.job.path(), "-o", "yaml"}) == 10);
  CHECK(cli.out().find("\n---\n") != std::string::npos);
}

TEST_CASE("submit prints one JSON object even if the jobs need several calls") {
  Cli cli;
  v1::SubmitJobsResponse first, second;
  for (int i = 0; i < 1000; ++i) first.add_jobs()->set_name("a");
  second.add_jobs()->set_name("b");
  cli.script.Answer("SubmitJobs", first);
  cli.script.Answer("SubmitJobs", second);
  std::string manifests;
  for (int i = 0; i < 1001; ++i) manifests += std::string(i == 0 ? "" : "---\n") + kJob;
  const TempFile file(manifests);
  CHECK(cli.Run({"submit", file.path(), "-o", "json"}) == 0);
  google::protobuf::Struct value;
  CHECK(google::protobuf::util::JsonStringToMessage(cli.out(), &value).ok());
  CHECK(value.fields().at("jobs").list_value().values_size() == 1001);
}

}  // namespace berth
