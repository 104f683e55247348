#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clients/cli/topology/node_names.h"
#include "clients/slurm/commands.h"
#include "clients/slurm/hosts.h"
#include "clients/slurm/job_fields.h"
#include "clients/slurm/json.h"
#include "clients/slurm/node_rows.h"
#include "clients/slurm/option_tables.h"
#include "clients/slurm/row_text.h"
#include "clients/slurm/values.h"
#include "support/visible.h"

namespace berth {
namespace {

// A line: nodes of one partition that look alike.
struct NodeLine {
  const PartitionRow* partition = nullptr;
  std::vector<const v1::Node*> nodes;  // empty: the partition has none
};

struct NodeField {
  char letter;
  const char* name;
  const char* heading;
  bool sums;  // over the nodes of the line, so that nodes with different values share one
  std::string (*text)(const NodeLine&);
};

using Line = const NodeLine&;
constexpr int64_t kMiBOfNode = int64_t{1} << 20;

const v1::Node* First(Line line) { return line.nodes.empty() ? nullptr : line.nodes.front(); }

enum class Use { kAllocated, kIdle, kOther };
Use UseOfNode(const v1::Node& node) {
  if (!Responds(node) || node.status().cordoned() || node.status().draining()) return Use::kOther;
  return node.status().tasks() > 0 ? Use::kAllocated : Use::kIdle;
}

int CountNodes(Line line, Use use) {
  return static_cast<int>(std::count_if(line.nodes.begin(), line.nodes.end(),
                                        [&](const v1::Node* n) { return UseOfNode(*n) == use; }));
}

std::string PartitionText(Line line) {
  return absl::StrCat(line.partition->name, line.partition->is_default ? "*" : "");
}
std::string PartitionOnly(Line line) { return line.partition->name; }
std::string Available(Line line) { return line.partition->up ? "up" : "down"; }
std::string LimitText(absl::Duration limit) {
  return limit == absl::InfiniteDuration() ? "infinite" : ShortElapsed(limit);
}
std::string Limit(Line line) { return LimitText(line.partition->limit); }
std::string DefaultTime(Line line) { return LimitText(line.partition->default_time); }
std::string NodesOfLine(Line line) { return absl::StrCat(line.nodes.size()); }
std::string StateBrief(Line line) {
  return First(line) == nullptr ? "n/a" : NodeStateText(*First(line));
}
std::string StateInFull(Line line) {
  return First(line) == nullptr ? "n/a" : NodeStateText(*First(line), true);
}
std::string NamesOfLine(Line line) {
  std::vector<std::string> names;
  for (const v1::Node* node : line.nodes) names.push_back(node->name());
  return CompressHosts(names);
}
std::string NameOfNode(Line line) { return First(line) == nullptr ? "" : First(line)->name(); }
std::string AddressOfNode(Line line) {
  return First(line) == nullptr ? "" : First(line)->inventory().address();
}
std::string CpusOfNodes(Line line) {
  return First(line) == nullptr ? "0" : absl::StrCat(UseOf(*First(line)).cpus);
}
std::string MemoryOfNodes(Line line) {
  return First(line) == nullptr ? "0" : absl::StrCat(UseOf(*First(line)).memory / kMiBOfNode);
}
std::string FreeMemory(Line line) {
  return First(line) == nullptr ? "0" : absl::StrCat(UseOf(*First(line)).free / kMiBOfNode);
}
std::string GresOfNodes(Line line) {
  return First(line) == nullptr ? "(null)" : GresText(*First(line));
}
std::string GresUsed(Line line) {
  return First(line) == nullptr ? "gpu:0" : absl::StrCat("gpu:", UseOf(*First(line)).gpus_used);
}
std::string FeaturesOfNodes(Line line) {
  if (First(line) == nullptr) return "(null)";
  std::vector<std::string> labels;
  for (const auto& [key, value] : First(line)->inventory().labels())
    labels.push_back(absl::StrCat(key, "=", value));
  std::sort(labels.begin(), labels.end());
  return labels.empty() ? "(null)" : absl::StrJoin(labels, ",");
}
std::string NodeReason(Line line) {
  const std::string reason = First(line) == nullptr ? "" : First(line)->status().reason();
  return reason.empty() ? "none" : reason;
}
std::string CpuStates(Line line) {
  int64_t used = 0, idle = 0, other = 0;
  for (const v1::Node* node : line.nodes) {
    const NodeUse use = UseOf(*node);
    used += use.used;
    (UseOfNode(*node) == Use::kOther ? other : idle) += use.cpus - use.used;
  }
  return absl::StrCat(used, "/", idle, "/", other, "/", used + idle + other);
}
std::string NodeStates(Line line) {
  return absl::StrCat(CountNodes(line, Use::kAllocated), "/", CountNodes(line, Use::kIdle), "/",
                      CountNodes(line, Use::kOther), "/", line.nodes.size());
}
std::string AllocatedIdle(Line line) {
  return absl::StrCat(CountNodes(line, Use::kAllocated), "/", CountNodes(line, Use::kIdle));
}
std::string Unlimited(Line) { return "UNLIMITED"; }
std::string Unknown(Line) { return "N/A"; }
std::string One(Line) { return "1"; }
std::string No(Line) { return "no"; }
std::string All(Line) { return "all"; }
std::string VersionOfNode(Line line) {
  return First(line) == nullptr ? "" : First(line)->status().agent_version();
}

constexpr NodeField kNodeFields[] = {
    {'P', "Partition", "PARTITION", false, PartitionText},
    {'R', "PartitionName", "PARTITION", false, PartitionOnly},
    {'a', "Available", "AVAIL", false, Available},
    {'l', "Time", "TIMELIMIT", false, Limit},
    {'L', "DefaultTime", "DEFAULTTIME", false, DefaultTime},
    {'D', "Nodes", "NODES", true, NodesOfLine},
    {'t', "StateCompact", "STATE", false, StateBrief},
    {'T', "StateLong", "STATE", false, StateInFull},
    {'N', "NodeList", "NODELIST", true, NamesOfLine},
    {'n', "NodeHost", "HOSTNAMES", false, NameOfNode},
    {'o', "NodeAddr", "NODE_ADDR", false, AddressOfNode},
    {'c', "CPUs", "CPUS", false, CpusOfNodes},
    {'C', "CPUsState", "CPUS(A/I/O/T)", true, CpuStates},
    {'m', "Memory", "MEMORY", false, MemoryOfNodes},
    {'e', "FreeMem", "FREE_MEM", false, FreeMemory},
    {'G', "Gres", "GRES", false, GresOfNodes},
    {0, "GresUsed", "GRES_USED", false, GresUsed},
    {'f', "Features", "AVAIL_FEATURES", false, FeaturesOfNodes},
    {'b', "Features_act", "ACTIVE_FEATURES", false, FeaturesOfNodes},
    {'E', "Reason", "REASON", false, NodeReason},
    {'F', "NodeAIOT", "NODES(A/I/O/T)", true, NodeStates},
    {'A', "NodeAI", "NODES(A/I)", true, AllocatedIdle},
    {'O', "CPUsLoad", "CPU_LOAD", false, Unknown},
    {'X', "Sockets", "SOCKETS", false, Unknown},
    {'Y', "Cores", "CORES", false, Unknown},
    {'Z', "Threads", "THREADS", false, Unknown},
    {'z', "SocketCoreThread", "S:C:T", false, Unknown},
    {'d', "Disk", "TMP_DISK", false, Unknown},
    {'w', "Weight", "WEIGHT", false, One},
    {'p', "PriorityTier", "PRIO_TIER", false, One},
    {'s', "Size", "JOB_SIZE", false, Unlimited},
    {'r', "Root", "ROOT", false, No},
    {'g', "Groups", "GROUPS", false, All},
    {'h', "OverSubscribe", "OVERSUBSCRIBE", false, No},
    {'u', "User", "USER", false, Unknown},
    {'H', "Timestamp", "TIMESTAMP", false, Unknown},
    {'v', "Version", "VERSION", false, VersionOfNode},
};
using NodeColumn = FieldColumn<NodeField>;

absl::StatusOr<std::vector<NodeColumn>> ParseNodeLetters(absl::string_view format,
                                                         std::string* after) {
  std::vector<NodeColumn> columns;
  std::string literal;
  for (size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%' || at + 1 >= format.size()) {
      literal += format[at];
      continue;
    }
    NodeColumn column{.before = std::move(literal)};
    literal.clear();
    column.right = format[++at] == '.';
    if (column.right) ++at;
    while (at < format.size() && absl::ascii_isdigit(static_cast<unsigned char>(format[at])) &&
           column.width < 10'000) {
      column.width = column.width * 10 + (format[at++] - '0');
    }
    const char letter = at < format.size() ? format[at] : ' ';
    const auto field = std::find_if(std::begin(kNodeFields), std::end(kNodeFields),
                                    [&](const NodeField& known) { return known.letter == letter; });
    if (field == std::end(kNodeFields)) {
      return absl::InvalidArgumentError(
          absl::StrCat("Invalid node format specification: %", std::string(1, letter)));
    }
    column.field = field;
    column.heading = field->heading;
    columns.push_back(std::move(column));
  }
  *after = literal;
  return columns;
}

absl::StatusOr<std::vector<NodeColumn>> ParseNodeNames(absl::string_view format) {
  std::vector<NodeColumn> columns;
  for (absl::string_view part : absl::StrSplit(format, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> words =
        absl::StrSplit(absl::StripAsciiWhitespace(part), absl::MaxSplits(':', 1));
    const auto field = std::find_if(
        std::begin(kNodeFields), std::end(kNodeFields),
        [&](const NodeField& f) { return absl::EqualsIgnoreCase(f.name, words.first); });
    if (field == std::end(kNodeFields))
      return absl::InvalidArgumentError(
          absl::StrCat("Invalid field requested: \"", words.first, "\""));
    NodeColumn column{.field = field, .heading = field->heading, .width = 20};
    absl::string_view width = words.second;
    column.right = absl::ConsumePrefix(&width, ".");
    if (!width.empty() && !absl::SimpleAtoi(width, &column.width))
      return absl::InvalidArgumentError(absl::StrCat("Invalid width: ", part));
    columns.push_back(std::move(column));
  }
  return columns;
}

struct NodeView {
  std::vector<NodeColumn> columns;
  std::string after;
  std::set<std::string> partitions, nodes, states;
  bool each = false;  // a line for each node
  bool only_up = false, only_dead = false, only_reasons = false;
};

absl::StatusOr<NodeView> NodeViewOf(const SlurmArguments& arguments) {
  NodeView view;
  view.each = arguments.Has("Node");
  view.only_up = arguments.Has("responding");
  view.only_dead = arguments.Has("dead");
  view.only_reasons = arguments.Has("list-reasons");
  const bool wide = arguments.Has("long");
  const char* usual = "%9P %.5a %.10l %.6D %.6t %N";
  if (view.each)
    usual = wide ? "%N %.5D %9P %11T %.4c %.8m %f %20E" : "%N %.6D %.9P %6t";
  else if (arguments.Has("summarize"))
    usual = "%9P %.5a %.10l %.16F  %N";
  else if (view.only_reasons)
    usual = "%20E %9u %19H %N";
  else if (wide)
    usual = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N";
  const std::string* letters = arguments.Find("format");
  const std::string* names = arguments.Find("Format");
  auto columns = names != nullptr
                     ? ParseNodeNames(*names)
                     : ParseNodeLetters(letters != nullptr ? *letters : usual, &view.after);
  if (!columns.ok()) return columns.status();
  view.columns = *std::move(columns);
  if (const std::string* text = arguments.Find("partition"))
    view.partitions = absl::StrSplit(*text, ',', absl::SkipWhitespace());
  if (const std::string* text = arguments.Find("states"))
    view.states = absl::StrSplit(absl::AsciiStrToLower(*text), ',', absl::SkipWhitespace());
  if (const std::string* text = arguments.Find("nodes")) {
    NameLists lists;
    const auto expanded = lists.ExpandNodes(*text);
    if (!expanded.ok()) return expanded.status();
    view.nodes.insert(expanded->begin(), expanded->end());
  }
  return view;
}

bool IsShown(const v1::Node& node, const NodeView& view) {
  if (!view.nodes.empty() && !view.nodes.contains(node.name())) return false;
  if ((view.only_up && !Responds(node)) || (view.only_dead && Responds(node))) return false;
  if (view.only_reasons && node.status().reason().empty()) return false;
  if (view.states.empty() || view.states.contains("all")) return true;
  for (const bool in_full : {false, true}) {
    const std::string state = NodeStateText(node, in_full);
    if (view.states.contains(std::string(absl::StripSuffix(state, "*")))) return true;
  }
  return view.states.contains("down") && !Responds(node);
}

std::vector<NodeLine> LinesOf(const std::vector<PartitionRow>& partitions, const NodeView& view) {
  std::vector<NodeLine> lines;
  for (const PartitionRow& partition : partitions) {
    if (!view.partitions.empty() && !view.partitions.contains(partition.name)) continue;
    std::map<std::string, NodeLine> alike;
    for (const v1::Node& node : partition.nodes) {
      if (!IsShown(node, view)) continue;
      const NodeLine alone{&partition, {&node}};
      std::string key = view.each ? node.name() : "";
      for (const NodeColumn& column : view.columns)
        if (!column.field->sums) absl::StrAppend(&key, "\n", column.field->text(alone));
      NodeLine& line = alike[key];
      line.partition = &partition;
      line.nodes.push_back(&node);
    }
    for (auto& [key, line] : alike) lines.push_back(std::move(line));
    const bool filtered =
        !view.nodes.empty() || !view.states.empty() || view.only_reasons || view.each;
    if (alike.empty() && !filtered) lines.push_back({&partition, {}});
  }
  return lines;
}

void PrintNodeLine(std::ostream& out, const NodeView& view, const NodeLine* line) {
  std::string text;
  for (const NodeColumn& column : view.columns) {
    const std::string cell = line == nullptr ? column.heading : Visible(column.field->text(*line));
    absl::StrAppend(&text, column.before, InWidth(cell, column.width, column.right));
  }
  out << text << view.after << "\n";
}

std::string LinesAsJson(const std::vector<PartitionRow>& partitions) {
  std::vector<Json> entries;
  for (const PartitionRow& partition : partitions) {
    for (const v1::Node& node : partition.nodes) {
      const NodeUse use = UseOf(node);
      entries.push_back(JsonObject(
          {{"partition", JsonObject({{"name", partition.name}})},
           {"nodes",
            JsonObject({{"nodes", JsonList(std::vector<Json>{node.name()})}, {"total", 1}})},
           {"node",
            JsonObject({{"state", JsonList(std::vector<Json>{NodeStateText(node, true)})}})},
           {"cpus", JsonObject({{"total", use.cpus}, {"allocated", use.used}})},
           {"memory", JsonObject({{"maximum", use.memory / kMiBOfNode},
                                  {"free", SetNumber(use.free / kMiBOfNode)}})},
           {"gres", JsonObject({{"total", GresText(node)}})}}));
    }
  }
  return JsonObject({{"sinfo", JsonList(entries)},
                     {"errors", JsonList(std::vector<Json>{})},
                     {"warnings", JsonList(std::vector<Json>{})}})
      .text;
}

int ShowInfo(SlurmContext& context, const SlurmArguments& arguments, const NodeView& view) {
  const auto partitions = FindPartitions(context);
  if (!partitions.ok()) return context.Fail(partitions.status());
  if (arguments.Has("json")) {
    context.out() << LinesAsJson(*partitions) << "\n";
    return 0;
  }
  if (!arguments.Has("noheader")) PrintNodeLine(context.out(), view, nullptr);
  for (const NodeLine& line : LinesOf(*partitions, view)) PrintNodeLine(context.out(), view, &line);
  context.out().flush();
  return 0;
}

}  // namespace

int RunSinfo(SlurmContext& context, const Words& words) {
  BegunCommand begun = BeginCommand(context, SinfoCommand(), words);
  if (begun.done) return begun.exit_code;
  if (!begun.arguments.operands.empty())
    return context.Fail(UnknownOperand(begun.arguments.operands.front()));
  const auto view = NodeViewOf(begun.arguments);
  if (!view.ok()) return context.Fail(view.status());
  const std::string* every = begun.arguments.Find("iterate");
  if (every == nullptr) return ShowInfo(context, begun.arguments, *view);
  const auto seconds = ParseSlurmCount("iterate", *every, 1, 86400);
  if (!seconds.ok()) return context.Fail(seconds.status());
  for (;;) {
    if (const int code = ShowInfo(context, begun.arguments, *view); code != 0) return code;
    std::this_thread::sleep_for(std::chrono::seconds(*seconds));
  }
}

}  // namespace berth
