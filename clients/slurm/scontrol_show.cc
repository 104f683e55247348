#include "clients/slurm/scontrol_show.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clients/cli/topology/node_names.h"
#include "clients/slurm/hosts.h"
#include "clients/slurm/job_fields.h"
#include "clients/slurm/job_json.h"
#include "clients/slurm/node_rows.h"
#include "clients/slurm/values.h"
#include "support/visible.h"

namespace berth {
namespace {

constexpr int64_t kMiBShown = int64_t{1} << 20;

using Pairs = std::vector<std::pair<std::string, std::string>>;

// "A=1 B=2" on one line, or a few pairs on each of several.
void PrintPairs(std::ostream& out, const std::vector<Pairs>& lines, const ShowStyle& style) {
  std::vector<std::string> texts;
  for (const Pairs& line : lines) {
    texts.push_back(absl::StrJoin(line, " ", [](std::string* text, const auto& pair) {
      absl::StrAppend(text, pair.first, "=", Visible(pair.second));
    }));
  }
  out << absl::StrJoin(texts, style.one_line ? " " : "\n   ") << "\n"
      << (style.one_line ? "" : "\n");
}

std::string FieldOf(const JobRow& row, const FieldContext& in, absl::string_view name) {
  for (const JobField& field : JobFields()) {
    if (name == field.queue) return field.text(row, in);
  }
  return "";
}

Pairs NumbersOf(const JobRow& row, const FieldContext& in) {
  Pairs pairs = {{"JobId", absl::StrCat(row.job.uid())}};
  if (ArrayOf(row.job) != 0 || !row.unmade.empty()) {
    pairs.emplace_back("ArrayJobId", FieldOf(row, in, "ArrayJobID"));
    pairs.emplace_back("ArrayTaskId", FieldOf(row, in, "ArrayTaskID"));
  }
  pairs.emplace_back("JobName", FieldOf(row, in, "Name"));
  return pairs;
}

std::vector<Pairs> JobLines(const JobRow& row, const FieldContext& in) {
  const auto field = [&](absl::string_view name) { return FieldOf(row, in, name); };
  const bool requeue = std::none_of(row.job.spec().policies().begin(),
                                    row.job.spec().policies().end(), [](const auto& policy) {
                                      return policy.event() == v1::LifecyclePolicy::NODE_LOST &&
                                             policy.action() == v1::LifecyclePolicy::ABORT;
                                    });
  const std::string nodes = CompressHosts(row.Nodes());
  FieldContext raw = in;
  raw.accounting = true;
  return {NumbersOf(row, in),
          {{"UserId", field("UserName")}, {"Account", field("Account")}, {"QOS", field("QOS")}},
          {{"Priority", field("PriorityLong")}, {"Nice", field("Nice")}},
          {{"JobState", field("State")},
           {"Reason", field("Reason")},
           {"Dependency", field("Dependency")}},
          {{"Requeue", requeue ? "1" : "0"},
           {"Restarts", field("RestartCnt")},
           {"BatchFlag", "1"},
           {"ExitCode", field("exit_code")}},
          {{"RunTime", FieldOf(row, raw, "TimeUsed")},
           {"TimeLimit", FieldOf(row, raw, "TimeLimit")},
           {"TimeMin", "N/A"}},
          {{"SubmitTime", field("SubmitTime")}, {"EligibleTime", field("EligibleTime")}},
          {{"StartTime", FieldOf(row, raw, "StartTime")},
           {"EndTime", FieldOf(row, raw, "EndTime")},
           {"Deadline", "N/A"}},
          {{"Partition", field("Partition")}},
          {{"ReqNodeList", "(null)"}, {"ExcNodeList", field("ExcNodes")}},
          {{"NodeList", nodes.empty() ? "(null)" : nodes}},
          {{"BatchHost", field("BatchHost")}},
          {{"NumNodes", field("NumNodes")},
           {"NumCPUs", field("NumCPUs")},
           {"NumTasks", field("NumTasks")}},
          {{"ReqTRES", FieldOf(row, in, "tres-alloc")}},
          {{"MinMemoryNode", field("MinMemory")}, {"TresPerNode", field("tres-per-node")}},
          {{"Command", field("Command")}},
          {{"WorkDir", field("WorkDir")}},
          {{"Comment", field("Comment")}},
          {{"StdErr", field("STDERR")}},
          {{"StdOut", field("STDOUT")}}};
}

absl::StatusOr<std::set<std::string>> NamesIn(const Words& words) {
  std::set<std::string> names;
  NameLists lists;
  for (const std::string& word : words) {
    const auto expanded = lists.Expand(word);
    if (!expanded.ok()) return expanded.status();
    names.insert(expanded->begin(), expanded->end());
  }
  return names;
}

std::vector<Pairs> NodeLines(const v1::Node& node) {
  const NodeUse use = UseOf(node);
  const std::string reason = node.status().reason();
  std::vector<Pairs> lines = {
      {{"NodeName", node.name()}, {"Arch", node.inventory().architecture()}},
      {{"CPUAlloc", absl::StrCat(use.used)},
       {"CPUEfctv", absl::StrCat(use.cpus)},
       {"CPUTot", absl::StrCat(use.cpus)},
       {"CPULoad", "N/A"}},
      {{"Gres", GresText(node)}},
      {{"NodeAddr", node.inventory().address()},
       {"NodeHostName", node.name()},
       {"Version", node.status().agent_version()}},
      {{"OS", node.inventory().os()}},
      {{"RealMemory", absl::StrCat(use.memory / kMiBShown)},
       {"AllocMem", absl::StrCat((use.memory - use.free) / kMiBShown)},
       {"FreeMem", absl::StrCat(use.free / kMiBShown)}},
      {{"State", absl::AsciiStrToUpper(NodeStateText(node, true))}}};
  if (!reason.empty()) lines.push_back({{"Reason", reason}});
  return lines;
}

}  // namespace

int ShowJobs(SlurmContext& context, const Words& words, const ShowStyle& style) {
  JobQuery query;
  for (const std::string& word : words) {
    const auto numbers = ParseJobNumbers(word);
    if (!numbers.ok()) return context.Fail(numbers.status());
    query.numbers.insert(query.numbers.end(), numbers->begin(), numbers->end());
  }
  query.ended = true;
  const auto rows = FindRows(context, query, {.tasks = true, .whole = true});
  if (!rows.ok()) return context.Fail(rows.status());
  const FieldContext in{
      .now = context.Now(), .zone = context.zone, .cluster = context.config.cluster_name()};
  if (style.json) {
    context.out() << JobsAsJson(*rows, in) << "\n";
    return 0;
  }
  for (const JobRow& row : *rows) PrintPairs(context.out(), JobLines(row, in), style);
  if (rows->empty()) context.out() << "No jobs in the system\n";
  return 0;
}

int ShowNodes(SlurmContext& context, const Words& words, const ShowStyle& style) {
  if (style.json)
    return context.Fail(absl::UnimplementedError("--json of nodes: use sinfo --json"));
  const auto names = NamesIn(words);
  if (!names.ok()) return context.Fail(names.status());
  const auto nodes = FindNodes(context);
  if (!nodes.ok()) return context.Fail(nodes.status());
  size_t shown = 0;
  for (const v1::Node& node : *nodes) {
    if (!names->empty() && !names->contains(node.name())) continue;
    ++shown;
    PrintPairs(context.out(), NodeLines(node), style);
  }
  if (shown >= names->size()) return 0;
  return context.Fail(absl::NotFoundError("Node not found: " + absl::StrJoin(words, ",")));
}

int ShowPartitions(SlurmContext& context, const Words& words, const ShowStyle& style) {
  if (style.json)
    return context.Fail(absl::UnimplementedError("--json of partitions: use sinfo --json"));
  const auto partitions = FindPartitions(context);
  if (!partitions.ok()) return context.Fail(partitions.status());
  const std::set<std::string> names(words.begin(), words.end());
  size_t shown = 0;
  for (const PartitionRow& partition : *partitions) {
    if (!names.empty() && !names.contains(partition.name)) continue;
    ++shown;
    std::vector<std::string> nodes;
    int64_t cpus = 0;
    for (const v1::Node& node : partition.nodes) {
      nodes.push_back(node.name());
      cpus += UseOf(node).cpus;
    }
    const auto time = [](absl::Duration limit, const char* none) {
      return limit == absl::InfiniteDuration() ? none : SlurmElapsed(limit);
    };
    PrintPairs(context.out(),
               {{{"PartitionName", partition.name}},
                {{"AllowGroups", "ALL"}, {"Default", partition.is_default ? "YES" : "NO"}},
                {{"DefaultTime", time(partition.default_time, "NONE")},
                 {"MaxTime", time(partition.limit, "UNLIMITED")},
                 {"MaxNodes", "UNLIMITED"}},
                {{"Nodes", CompressHosts(nodes)}},
                {{"State", partition.up ? "UP" : "DOWN"},
                 {"TotalCPUs", absl::StrCat(cpus)},
                 {"TotalNodes", absl::StrCat(nodes.size())}}},
               style);
  }
  if (shown >= names.size()) return 0;
  return context.Fail(absl::NotFoundError("Partition not found: " + absl::StrJoin(words, ",")));
}

int ShowConfig(SlurmContext& context) {
  const auto info =
      context.Call(&v1::ClusterService::StubInterface::GetClusterInfo, v1::GetClusterInfoRequest());
  if (!info.ok()) return context.Fail(info.status());
  const Pairs settings = {{"ClusterName", context.config.cluster_name()},
                          {"JobRequeue", "1"},
                          {"KillWait", "30 sec"},
                          {"MaxArraySize", "1000001"},
                          {"SlurmctldHost[0]", context.server()},
                          {"SLURM_VERSION", "23.11.0"},
                          {"BerthVersion", info->version()}};
  context.out() << "Configuration data of Berth, as far as Slurm has a name for it\n";
  for (const auto& [name, value] : settings)
    context.out() << name << std::string(name.size() < 24 ? 24 - name.size() : 1, ' ') << "= "
                  << value << "\n";
  return 0;
}

int Ping(SlurmContext& context) {
  const auto info =
      context.Call(&v1::ClusterService::StubInterface::GetClusterInfo, v1::GetClusterInfoRequest());
  context.out() << "Slurmctld(primary) at " << context.server() << " is "
                << (info.ok() ? "UP" : "DOWN") << "\n";
  return info.ok() ? 0 : 1;
}

}  // namespace berth
