#include "clients/cli/job_ended.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/csv.h"
#include "clients/cli/human.h"
#include "clients/cli/past_time.h"
#include "clients/cli/resource_names.h"
#include "clients/cli/usage_figures.h"
#include "clients/cli/usage_view.h"
#include "support/number_check.h"
#include "support/proto_json.h"
#include "support/proto_time.h"
#include "support/yaml_proto_scalar.h"

namespace berth {
namespace {

using HistoryStub = v1::HistoryService::StubInterface;

constexpr v1::JobState kEndStates[] = {v1::JOB_SUCCEEDED, v1::JOB_FAILED, v1::JOB_CANCELLED};

struct EndedArguments {
  v1::ListEndedJobsRequest request;
  std::string since = "24h", until;
  int64_t limit = 0;  // 0: none
};

// The end state with this name, or none.
v1::JobState EndState(const std::string& text) {
  const auto* value = FindEnumValue(v1::JobState_descriptor(), text);
  for (const v1::JobState state : kEndStates) {
    if (value != nullptr && value->number() == state) return state;
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

const CLI::Validator kIsEndState(
    [](const std::string& text) -> std::string {
      if (EndState(text) != v1::JOB_STATE_UNSPECIFIED) return "";
      return absl::StrCat("\"", text,
                          "\" is no state of a job that has ended: succeeded, failed, cancelled");
    },
    "STATE");

absl::Status FillEndTimes(EndedArguments& arguments, const Session& session) {
  const absl::TimeZone zone = session.io().time_zone;
  const auto since = PastTime(arguments.since, session, zone);
  if (!since.ok()) return since.status();
  ToProto(*since, arguments.request.mutable_since());
  if (arguments.until.empty()) return absl::OkStatus();
  const auto until = PastTime(arguments.until, session, zone);
  if (!until.ok()) return until.status();
  ToProto(*until, arguments.request.mutable_until());
  return absl::OkStatus();
}

// From the latest start to the end.
std::string RanText(const v1::EndedJob& job) {
  if (!job.has_last_start_time()) return "-";
  return HumanDuration(TimeFrom(job.end_time()) - TimeFrom(job.last_start_time()));
}

// "signal 9", "3", or nothing.
std::string ExitText(const v1::EndedJob& job) {
  if (job.exit_signal() != 0) return absl::StrCat("signal ", job.exit_signal());
  return job.exit_code() == 0 ? "" : absl::StrCat(job.exit_code());
}

Table EndedTable(const std::vector<v1::EndedJob>& jobs, absl::TimeZone zone) {
  MeteredResources resources;
  for (const v1::EndedJob& job : jobs) resources.See(job.held());
  const std::string main = resources.Main();
  Table table({{"NAME"},
               {"QUEUE"},
               {"USER"},
               {"STATE"},
               {"ENDED"},
               {"RAN", Column::kRight},
               {"TASKS", Column::kRight},
               {UnitHeading(main), Column::kRight},
               {"LOST TO PREEMPTION", Column::kRight | Column::kWide},
               {"LOST TO FAULTS", Column::kRight | Column::kWide},
               {"SUBMITTED", Column::kWide},
               {"ACCOUNT", Column::kWide},
               {"STARTS", Column::kRight | Column::kWide},
               {"EVICTIONS", Column::kRight | Column::kWide},
               {"EXIT", Column::kWide},
               {"UID", Column::kWide},
               {"MESSAGE", Column::kShorten}});
  const auto time = [&](bool has, const google::protobuf::Timestamp& at) {
    return Word{HumanTime(has, at, zone)};
  };
  for (const v1::EndedJob& job : jobs) {
    const std::string& user = job.user().empty() ? job.owner() : job.user();
    table.AddRow({{job.name()},
                  {job.queue()},
                  {user},
                  JobStateWord(job.state()),
                  time(job.has_end_time(), job.end_time()),
                  {RanText(job)},
                  {absl::StrCat(job.tasks())},
                  {HoursText(HoursOf(job.held(), main))},
                  {HoursText(HoursOf(job.lost_to_preemption(), main))},
                  {HoursText(HoursOf(job.lost_to_faults(), main))},
                  time(job.has_submit_time(), job.submit_time()),
                  {job.account()},
                  {absl::StrCat(job.start_count())},
                  {absl::StrCat(job.evictions())},
                  {ExitText(job)},
                  {absl::StrCat(job.uid())},
                  {job.message()}});
  }
  return table;
}

std::vector<std::string> CsvHeader(const std::vector<std::string>& resources) {
  std::vector<std::string> cells = {"uid",       "name",        "queue",       "queue_path",
                                    "user",      "owner",       "account",     "priority_class",
                                    "state",     "submit_time", "first_start", "last_start",
                                    "end_time",  "tasks",       "starts",      "retries",
                                    "evictions", "exit_code",   "exit_signal", "message"};
  for (const std::string& one : resources) {
    cells.push_back(UnitColumn(one));
    cells.push_back(absl::StrCat(UnitColumn(one), "_paused"));
    cells.push_back(absl::StrCat(UnitColumn(one), "_lost_to_preemption"));
    cells.push_back(absl::StrCat(UnitColumn(one), "_lost_to_faults"));
  }
  return cells;
}

std::vector<std::string> CsvCells(const v1::EndedJob& job,
                                  const std::vector<std::string>& resources) {
  std::vector<std::string> cells = {absl::StrCat(job.uid()),
                                    job.name(),
                                    job.queue(),
                                    job.queue_path(),
                                    job.user(),
                                    job.owner(),
                                    job.account(),
                                    job.priority_class(),
                                    HumanEnum(job.state()),
                                    TimeForCsv(job.has_submit_time(), job.submit_time()),
                                    TimeForCsv(job.has_first_start_time(), job.first_start_time()),
                                    TimeForCsv(job.has_last_start_time(), job.last_start_time()),
                                    TimeForCsv(job.has_end_time(), job.end_time()),
                                    absl::StrCat(job.tasks()),
                                    absl::StrCat(job.start_count()),
                                    absl::StrCat(job.retries()),
                                    absl::StrCat(job.evictions()),
                                    absl::StrCat(job.exit_code()),
                                    absl::StrCat(job.exit_signal()),
                                    job.message()};
  for (const std::string& one : resources) {
    for (const v1::ResourceTime* time :
         {&job.held(), &job.paused(), &job.lost_to_preemption(), &job.lost_to_faults()}) {
      cells.push_back(HoursExact(HoursOf(*time, one)));
    }
  }
  return cells;
}

void PrintEndedCsv(Session& session, const std::vector<v1::EndedJob>& jobs) {
  MeteredResources seen;
  for (const v1::EndedJob& job : jobs) seen.See(job.held());
  const std::vector<std::string> resources = seen.ForCsv();
  session.out() << CsvLine(CsvHeader(resources));
  for (const v1::EndedJob& job : jobs) session.out() << CsvLine(CsvCells(job, resources));
}

// JSON is printed page by page, because the list may be long.
absl::Status ListEnded(Session& session, EndedArguments& arguments) {
  if (const absl::Status times = FillEndTimes(arguments, session); !times.ok()) return times;
  const bool json = session.options.format == Format::kJson;
  session.exact_answers = json;  // JSON escapes by its own rules
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  std::vector<v1::EndedJob> jobs;
  v1::HistoryState state;
  int64_t left = arguments.limit == 0 ? INT64_MAX : arguments.limit;
  const auto see = [&](const v1::ListEndedJobsResponse& page) {
    if (!state.has_as_of()) state = page.state();
    for (const v1::EndedJob& job : page.jobs()) {
      if (left-- <= 0) return false;
      if (json) session.out() << WriteJson(job) << "\n";
      if (!json) jobs.push_back(job);
    }
    return left > 0 && session.out().good();  // the reader may be gone
  };
  const absl::Status status =
      (*client)->List<HistoryStub, v1::ListEndedJobsRequest, v1::ListEndedJobsResponse>(
          &HistoryStub::ListEndedJobs, arguments.request, see);
  if (!status.ok()) return status;
  if (session.options.format == Format::kCsv) PrintEndedCsv(session, jobs);
  if (session.options.format == Format::kTable || session.options.format == Format::kWide) {
    if (jobs.empty()) session.err() << "no jobs ended\n";
    session.out() << EndedTable(jobs, session.io().time_zone).Render(session.table_style());
  }
  const v1::ListEndedJobsRequest& request = arguments.request;
  PrintHistoryNotes(session, state, TimeFrom(request.since()),
                    request.has_until() ? TimeFrom(request.until()) : absl::InfiniteFuture());
  return absl::OkStatus();
}

}  // namespace

void AddJobEnded(CLI::App& noun, Session& session) {
  auto arguments = std::make_shared<EndedArguments>();
  CLI::App* ended = AddCommand(
      noun, session, "ended",
      "list jobs that have ended, also those that were deleted, the last first; -o json prints one "
      "object a line",
      [arguments](Session& s) { return s.Finish(ListEnded(s, *arguments)); });
  v1::ListEndedJobsRequest& request = arguments->request;
  ended->add_option("--since", arguments->since,
                    "ended so long ago at most (24h, 30d), or since a time (2026-12-01T10:00); "
                    "default 24h");
  ended->add_option("--until", arguments->until, "likewise: ended before; default now");
  ended
      ->add_option_function<std::string>(
          "--queue,-q", [&request](const std::string& name) { request.set_queue(name); },
          "only jobs of this queue and those below it")
      ->transform(NameOf("queue"));
  const auto text = [&](const char* option, const char* help,
                        void (v1::ListEndedJobsRequest::*set)(const std::string&)) {
    ended->add_option_function<std::string>(
        option, [&request, set](const std::string& value) { (request.*set)(value); }, help);
  };
  text("--user,-u", "only jobs accounted to this user",
       &v1::ListEndedJobsRequest::set_user<const std::string&>);
  text("--owner", "only jobs that this user submitted",
       &v1::ListEndedJobsRequest::set_owner<const std::string&>);
  text("--account", "only jobs with this account",
       &v1::ListEndedJobsRequest::set_account<const std::string&>);
  ended
      ->add_option_function<std::string>(
          "--name", [&request](const std::string& pattern) { request.set_name_pattern(pattern); },
          "only jobs with this name or pattern, such as 'train-*'")
      ->transform(NameOf("job"));
  ended
      ->add_option_function<std::vector<std::string>>(
          "--state,-s",
          [&request](const std::vector<std::string>& states) {
            for (const std::string& state : states) request.add_states(EndState(state));
          },
          "only in these states: succeeded, failed, cancelled")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(kIsEndState);
  ended->add_option("--limit", arguments->limit, "at most N jobs")->check(WholeNumber<int64_t>(1));
}

}  // namespace berth
