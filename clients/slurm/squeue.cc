#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/slurm/commands.h"
#include "clients/slurm/job_fields.h"
#include "clients/slurm/job_json.h"
#include "clients/slurm/job_state.h"
#include "clients/slurm/option_tables.h"
#include "clients/slurm/row_text.h"
#include "clients/slurm/values.h"
#include "support/visible.h"

namespace berth {
namespace {

constexpr char kUsualQueue[] = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
constexpr char kLongQueue[] = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
constexpr char kStartQueue[] = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";

struct QueueView {
  JobQuery query;
  std::vector<JobColumn> columns;
  std::string after;
  bool header = true;
  std::vector<std::pair<char, bool>> order;  // letter; true: descending
};

absl::StatusOr<QueueView> ViewOf(const SlurmArguments& arguments) {
  QueueView view;
  absl::StatusOr<JobQuery> query = QueryOf(arguments);
  if (!query.ok()) return query.status();
  view.query = *std::move(query);
  view.query.split = arguments.Has("array");
  view.header = !arguments.Has("noheader");
  if (const std::string* states = arguments.Find("states")) {
    auto parsed = ParseStates(*states);
    if (!parsed.ok()) return parsed.status();
    view.query.states = *std::move(parsed);
    view.query.ended = true;
  } else if (!view.query.numbers.empty()) {
    view.query.states = {"PENDING", "CONFIGURING", "RUNNING", "REQUEUED", "COMPLETING"};
  }
  const std::string* names = arguments.Find("Format");
  const std::string* letters = arguments.Find("format");
  const char* usual = arguments.Has("start")  ? kStartQueue
                      : arguments.Has("long") ? kLongQueue
                                              : kUsualQueue;
  auto columns = names != nullptr
                     ? ParseQueueNames(*names)
                     : ParseLetters(letters != nullptr ? *letters : usual, &view.after);
  if (!columns.ok()) return columns.status();
  view.columns = *std::move(columns);
  if (const std::string* sort = arguments.Find("sort")) {
    for (absl::string_view part : absl::StrSplit(*sort, ',', absl::SkipWhitespace())) {
      const bool down = absl::ConsumePrefix(&part, "-");
      absl::ConsumePrefix(&part, "+");
      std::string ignored;
      const auto known = ParseLetters(absl::StrCat("%", part), &ignored);
      if (part.size() != 1 || !known.ok())
        return absl::InvalidArgumentError(absl::StrCat("--sort: unknown field \"", part, "\""));
      view.order.emplace_back(part[0], down);
    }
  }
  return view;
}

// Numbers by value.
bool IsBefore(const std::string& a, const std::string& b) {
  int64_t left = 0, right = 0;
  if (absl::SimpleAtoi(a, &left) && absl::SimpleAtoi(b, &right)) return left < right;
  return a < b;
}

void Sort(const QueueView& view, const FieldContext& in, std::vector<JobRow>* rows) {
  for (auto key = view.order.rbegin(); key != view.order.rend(); ++key) {
    const auto field = std::find_if(JobFields().begin(), JobFields().end(),
                                    [&](const JobField& f) { return f.letter == key->first; });
    std::stable_sort(rows->begin(), rows->end(), [&](const JobRow& a, const JobRow& b) {
      const std::string left = field->text(a, in), right = field->text(b, in);
      return key->second ? IsBefore(right, left) : IsBefore(left, right);
    });
  }
}

void PrintLine(std::ostream& out, const QueueView& view, const JobRow* row,
               const FieldContext& in) {
  std::string line;
  for (const JobColumn& column : view.columns) {
    const std::string text =
        row == nullptr ? column.heading : Visible(column.field->text(*row, in));
    absl::StrAppend(&line, column.before, InWidth(text, column.width, column.right));
  }
  out << line << view.after << "\n";
}

int ShowQueue(SlurmContext& context, const SlurmArguments& arguments, const QueueView& view) {
  RowNeeds needs = NeedsOf(view.columns);
  const bool json = arguments.Has("json");
  if (json) needs = {.tasks = true, .whole = true};
  needs.estimate = arguments.Has("start");
  auto rows = FindRows(context, view.query, needs);
  if (!rows.ok()) return context.Fail(rows.status());
  const FieldContext in{.now = context.Now(),
                        .zone = context.zone,
                        .cluster = context.config.cluster_name(),
                        .convert = !arguments.Has("noconvert")};
  Sort(view, in, &*rows);
  if (json) {
    context.out() << JobsAsJson(*rows, in) << "\n";
    return 0;
  }
  if (arguments.Has("start")) {
    std::erase_if(*rows,
                  [](const JobRow& row) { return std::string(StateOf(row.job).brief) != "PD"; });
  }
  if (view.header) PrintLine(context.out(), view, nullptr, in);
  for (const JobRow& row : *rows) PrintLine(context.out(), view, &row, in);
  context.out().flush();
  return 0;
}

}  // namespace

int RunSqueue(SlurmContext& context, const Words& words) {
  BegunCommand begun = BeginCommand(context, SqueueCommand(), words);
  if (begun.done) return begun.exit_code;
  // The list may also follow -j as a word of its own.
  for (GivenOption& given : begun.arguments.options) {
    if (std::string(given.option->name) != "jobs" || !given.value.empty()) continue;
    if (begun.arguments.operands.empty()) continue;
    given.value = begun.arguments.operands.front();
    begun.arguments.operands.erase(begun.arguments.operands.begin());
  }
  if (!begun.arguments.operands.empty())
    return context.Fail(UnknownOperand(begun.arguments.operands.front()));
  const auto view = ViewOf(begun.arguments);
  if (!view.ok()) return context.Fail(view.status());
  const std::string* every = begun.arguments.Find("iterate");
  if (every == nullptr) return ShowQueue(context, begun.arguments, *view);
  const auto seconds = ParseSlurmCount("iterate", *every, 1, 86400);
  if (!seconds.ok()) return context.Fail(seconds.status());
  for (;;) {
    if (const int code = ShowQueue(context, begun.arguments, *view); code != 0) return code;
    std::this_thread::sleep_for(std::chrono::seconds(*seconds));
  }
}

}  // namespace berth
