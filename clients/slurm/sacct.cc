#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/slurm/commands.h"
#include "clients/slurm/job_fields.h"
#include "clients/slurm/job_json.h"
#include "clients/slurm/job_state.h"
#include "clients/slurm/option_tables.h"
#include "clients/slurm/row_text.h"
#include "clients/slurm/submit.h"
#include "clients/slurm/values.h"
#include "support/visible.h"

namespace berth {
namespace {

constexpr char kUsualColumns[] = "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode";
constexpr char kBriefColumns[] = "JobID,State,ExitCode";
constexpr char kLongColumns[] =
    "JobID,JobIDRaw,JobName,Partition,Account,User,State,ExitCode,Submit,Start,End,Elapsed,"
    "Timelimit,NNodes,AllocCPUS,ReqMem,AllocTRES,QOS,Priority,Restarts,NodeList";

absl::StatusOr<JobQuery> AccountQuery(SlurmContext& context, const SlurmArguments& arguments) {
  absl::StatusOr<JobQuery> query = QueryOf(arguments);
  if (!query.ok()) return query.status();
  query->ended = true;
  query->archive = true;
  query->missing_is_error = false;
  query->split = arguments.Has("array");
  const absl::Time now = context.Now();
  const absl::TimeZone zone = context.zone;
  const bool chosen = !query->numbers.empty();
  if (!chosen && query->users.empty() && !arguments.Has("allusers")) query->users = {UserName()};
  const std::string* since = arguments.Find("starttime");
  if (since != nullptr || !chosen) {
    const auto time = ParseSlurmMoment(since == nullptr ? "midnight" : *since, now, zone);
    if (!time.ok()) return time.status();
    query->since = *time;
  }
  if (const std::string* until = arguments.Find("endtime")) {
    const auto time = ParseSlurmMoment(*until, now, zone);
    if (!time.ok()) return time.status();
    query->until = *time;
  }
  if (const std::string* states = arguments.Find("state")) {
    auto parsed = ParseStates(*states);
    if (!parsed.ok()) return parsed.status();
    query->states = *std::move(parsed);
  }
  return query;
}

struct AccountStyle {
  std::string delimiter;  // "": columns of their width
  bool at_end = false;    // also after the last column
};

std::string LineOf(const std::vector<JobColumn>& columns, const JobRow* row, const FieldContext& in,
                   const AccountStyle& style) {
  std::vector<std::string> cells;
  for (const JobColumn& column : columns) {
    const std::string text =
        row == nullptr ? column.heading : Visible(column.field->text(*row, in));
    cells.push_back(style.delimiter.empty() ? InWidth(text, column.width, column.right, '+')
                                            : text);
  }
  if (style.delimiter.empty()) return absl::StrJoin(cells, " ");
  return absl::StrCat(absl::StrJoin(cells, style.delimiter), style.at_end ? style.delimiter : "");
}

std::string RulerOf(const std::vector<JobColumn>& columns) {
  return absl::StrJoin(columns, " ", [](std::string* out, const JobColumn& column) {
    out->append(static_cast<size_t>(std::max(column.width, 1)), '-');
  });
}

AccountStyle StyleOf(const SlurmArguments& arguments) {
  const std::string* chosen = arguments.Find("delimiter");
  const bool parsable = arguments.Has("parsable"), parsable2 = arguments.Has("parsable2");
  if (!parsable && !parsable2) return {};
  return {.delimiter = chosen == nullptr ? "|" : *chosen, .at_end = parsable && !parsable2};
}

int PrintFieldNames(std::ostream& out) {
  for (const JobField& field : JobFields()) {
    if (field.account[0] != '\0') out << field.account << "\n";
  }
  return 0;
}

int PrintScripts(SlurmContext& context, const std::vector<JobRow>& rows) {
  for (const JobRow& row : rows) {
    if (row.archived.has_value()) continue;  // the history has no scripts
    Variables variables;
    for (const v1::EnvVar& variable : row.job.spec().groups(0).env())
      variables[variable.name()] = variable.value();
    const auto batch = BatchOf(variables);
    if (batch.ok()) context.out() << "Batch Script for " << row.number << "\n" << batch->script();
  }
  return 0;
}

}  // namespace

int RunSacct(SlurmContext& context, const Words& words) {
  BegunCommand begun = BeginCommand(context, SacctCommand(), words);
  if (begun.done) return begun.exit_code;
  if (!begun.arguments.operands.empty())
    return context.Fail(UnknownOperand(begun.arguments.operands.front()));
  const SlurmArguments& arguments = begun.arguments;
  if (arguments.Has("helpformat")) return PrintFieldNames(context.out());
  const auto query = AccountQuery(context, arguments);
  if (!query.ok()) return context.Fail(query.status());
  const std::string* format = arguments.Find("format");
  const char* usual = arguments.Has("brief")  ? kBriefColumns
                      : arguments.Has("long") ? kLongColumns
                                              : kUsualColumns;
  const auto columns = ParseAccountNames(format == nullptr ? usual : *format);
  if (!columns.ok()) return context.Fail(columns.status());
  const bool json = arguments.Has("json"), scripts = arguments.Has("batch-script");
  RowNeeds needs = NeedsOf(*columns);
  if (json || scripts) needs = {.tasks = true, .whole = true};
  const auto rows = FindRows(context, *query, needs);
  if (!rows.ok()) return context.Fail(rows.status());
  if (scripts) return PrintScripts(context, *rows);
  const FieldContext in{.now = context.Now(),
                        .zone = context.zone,
                        .cluster = context.config.cluster_name(),
                        .accounting = true,
                        .convert = !arguments.Has("noconvert")};
  if (json) {
    context.out() << JobsAsJson(*rows, in) << "\n";
    return 0;
  }
  const AccountStyle style = StyleOf(arguments);
  if (!arguments.Has("noheader")) {
    context.out() << LineOf(*columns, nullptr, in, style) << "\n";
    if (style.delimiter.empty()) context.out() << RulerOf(*columns) << "\n";
  }
  for (const JobRow& row : *rows) context.out() << LineOf(*columns, &row, in, style) << "\n";
  return 0;
}

}  // namespace berth
