// sshare and sprio, as far as they are true: shares belong to queues, and a job's place does not
// come from a sum of weights.
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/slurm/commands.h"
#include "clients/slurm/job_fields.h"
#include "clients/slurm/job_state.h"
#include "clients/slurm/option_tables.h"
#include "clients/slurm/row_text.h"
#include "support/visible.h"

namespace berth {
namespace {

struct ShareField {
  const char* name;
  int width;
  std::string (*text)(const v1::QueueShares&);
};

std::string ShareOfList(const v1::ResourceList& list) {
  std::vector<std::string> parts;
  if (list.has_cpu_millis()) parts.push_back(absl::StrCat("cpu=", list.cpu_millis() / 1000));
  if (list.has_memory_bytes())
    parts.push_back(absl::StrCat("mem=", list.memory_bytes() >> 20, "M"));
  std::vector<std::string> counts;
  for (const auto& [name, count] : list.counts())
    counts.push_back(absl::StrCat("gres/", name, "=", count));
  std::sort(counts.begin(), counts.end());
  parts.insert(parts.end(), counts.begin(), counts.end());
  return absl::StrJoin(parts, ",");
}

constexpr ShareField kShareFields[] = {
    {"Account", 20, [](const v1::QueueShares& s) { return s.queue(); }},
    {"User", 10, [](const v1::QueueShares&) { return std::string(); }},
    {"ParentName", 12,
     [](const v1::QueueShares& s) { return s.parent().empty() ? "root" : s.parent(); }},
    {"EffectvUsage", 13,
     [](const v1::QueueShares& s) {
       return s.dominant_share() < 0 ? std::string("inf")
                                     : absl::StrFormat("%.6f", s.dominant_share());
     }},
    {"TRESAllocated", 30, [](const v1::QueueShares& s) { return ShareOfList(s.allocated()); }},
    {"TRESFairShare", 30, [](const v1::QueueShares& s) { return ShareOfList(s.fair_share()); }},
    {"TRESDeserved", 30, [](const v1::QueueShares& s) { return ShareOfList(s.deserved()); }},
};
using ShareColumn = FieldColumn<ShareField>;

absl::StatusOr<std::vector<ShareColumn>> ShareColumns(const std::string& format) {
  std::vector<ShareColumn> columns;
  for (absl::string_view part : absl::StrSplit(format, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> words =
        absl::StrSplit(part, absl::MaxSplits('%', 1));
    const auto field = std::find_if(
        std::begin(kShareFields), std::end(kShareFields),
        [&](const ShareField& known) { return absl::EqualsIgnoreCase(known.name, words.first); });
    if (field == std::end(kShareFields)) {
      return absl::InvalidArgumentError(
          absl::StrCat("Invalid field requested: \"", words.first,
                       "\": shares here are amounts of resources; see berth queue shares"));
    }
    ShareColumn column{.field = field, .heading = field->name, .width = field->width};
    absl::string_view width = words.second;
    column.right = !absl::ConsumePrefix(&width, "-");
    if (!width.empty() && !absl::SimpleAtoi(width, &column.width))
      return absl::InvalidArgumentError(absl::StrCat("Invalid width: ", part));
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace

int RunSshare(SlurmContext& context, const Words& words) {
  BegunCommand begun = BeginCommand(context, SshareCommand(), words);
  if (begun.done) return begun.exit_code;
  const SlurmArguments& arguments = begun.arguments;
  const std::string* format = arguments.Find("format");
  const auto columns = ShareColumns(
      format != nullptr ? *format : "Account,ParentName,EffectvUsage,TRESAllocated,TRESFairShare");
  if (!columns.ok()) return context.Fail(columns.status());
  const bool parsable = arguments.Has("parsable"), parsable2 = arguments.Has("parsable2");
  const auto print = [&](const v1::QueueShares* share) {
    std::vector<std::string> cells;
    for (const ShareColumn& column : *columns) {
      const std::string text =
          share == nullptr ? column.heading : Visible(column.field->text(*share));
      cells.push_back(parsable || parsable2 ? text
                                            : InWidth(text, column.width, column.right, '+'));
    }
    context.out() << absl::StrJoin(cells, parsable || parsable2 ? "|" : " ")
                  << (parsable ? "|" : "") << "\n";
  };
  if (!arguments.Has("noheader")) print(nullptr);
  // Users have no shares of their own.
  if (arguments.Has("Users")) return 0;
  const auto shares =
      context.Call(&v1::QueueService::StubInterface::ListQueueShares, v1::ListQueueSharesRequest());
  if (!shares.ok()) return context.Fail(shares.status());
  std::set<std::string> wanted;
  if (const std::string* accounts = arguments.Find("accounts"))
    wanted = absl::StrSplit(*accounts, ',', absl::SkipWhitespace());
  for (const v1::QueueShares& share : shares->shares()) {
    if (wanted.empty() || wanted.contains(share.queue())) print(&share);
  }
  return 0;
}

int RunSprio(SlurmContext& context, const Words& words) {
  BegunCommand begun = BeginCommand(context, SprioCommand(), words);
  if (begun.done) return begun.exit_code;
  auto query = QueryOf(begun.arguments);
  if (!query.ok()) return context.Fail(query.status());
  query->states = {"PENDING"};
  const auto rows = FindRows(context, *query, {});
  if (!rows.ok()) return context.Fail(rows.status());
  const auto line = [&](absl::string_view number, absl::string_view partition,
                        absl::string_view user, absl::string_view priority) {
    context.out() << InWidth(number, 18, true) << " " << InWidth(partition, 10, true) << " "
                  << InWidth(user, 10, true) << " " << InWidth(priority, 10, true) << "\n";
  };
  if (!begun.arguments.Has("noheader")) line("JOBID", "PARTITION", "USER", "PRIORITY");
  for (const JobRow& row : *rows) {
    line(row.number, Visible(PartitionOf(row.job)), Visible(UserOf(row.job)),
         absl::StrCat(row.job.spec().priority()));
  }
  return 0;
}

// There is no database of associations: each of its verbs is refused, with what to use.
int RunSacctmgr(SlurmContext& context, const Words& words) {
  BegunCommand begun = BeginCommand(context, SacctmgrCommand(), words);
  if (begun.done) return begun.exit_code;
  return context.Fail(
      absl::UnimplementedError("there are no associations: accounts are labels of jobs; limits and "
                               "shares belong to queues (berth queue)"));
}

// Nor is the use of running jobs sampled for users.
int RunSstat(SlurmContext& context, const Words& words) {
  BegunCommand begun = BeginCommand(context, SstatCommand(), words);
  if (begun.done) return begun.exit_code;
  return context.Fail(
      absl::UnimplementedError("the use of a running step is not kept: look with srun --overlap "
                               "--jobid, or at the nodes' metrics"));
}

}  // namespace berth
