// berth usage: who used how much; berth cluster usage: how the capacity was used.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "clients/cli/command.h"
#include "clients/cli/past_time.h"
#include "clients/cli/resource_names.h"
#include "clients/cli/usage_view.h"
#include "support/number_check.h"
#include "support/proto_time.h"

namespace berth {
namespace {

using HistoryStub = v1::HistoryService::StubInterface;
using Dimension = v1::GetUsageRequest::Dimension;

const std::map<std::string, Dimension> kDimensions = {
    {"queue", v1::GetUsageRequest::QUEUE},
    {"user", v1::GetUsageRequest::USER},
    {"account", v1::GetUsageRequest::ACCOUNT},
    {"class", v1::GetUsageRequest::PRIORITY_CLASS},
    {"model", v1::GetUsageRequest::DEVICE_MODEL}};
const std::map<std::string, v1::HistoryStep> kSteps = {{"minute", v1::HISTORY_STEP_MINUTE},
                                                       {"hour", v1::HISTORY_STEP_HOUR},
                                                       {"day", v1::HISTORY_STEP_DAY},
                                                       {"month", v1::HISTORY_STEP_MONTH},
                                                       {"total", v1::HISTORY_STEP_TOTAL}};

struct UsagePeriod {
  std::string since = "30d", until;
  std::string step = "total";
};

struct UsageArguments {
  UsagePeriod period;
  v1::GetUsageRequest request;
  std::vector<std::string> by = {"queue"};
};

struct ClusterUsageArguments {
  UsagePeriod period;
  v1::GetCapacityRequest request;
  bool hours = false;
};

template <class Request>
absl::Status FillPeriod(const UsagePeriod& period, const Session& session, Request* request) {
  const auto from = PastTime(period.since, session, absl::UTCTimeZone());
  if (!from.ok()) return from.status();
  ToProto(*from, request->mutable_from());
  request->set_step(kSteps.at(period.step));
  if (period.until.empty()) return absl::OkStatus();
  const auto to = PastTime(period.until, session, absl::UTCTimeZone());
  if (!to.ok()) return to.status();
  ToProto(*to, request->mutable_to());
  return absl::OkStatus();
}

// All pages as one answer, with the state of the first.
template <class Request, class Response>
absl::StatusOr<Response> AllRows(Session& session, const Request& request,
                                 grpc::Status (HistoryStub::*method)(grpc::ClientContext*,
                                                                     const Request&, Response*)) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  Response all;
  const absl::Status status =
      (*client)->List<HistoryStub, Request, Response>(method, request, [&](const Response& page) {
        if (!all.has_state()) *all.mutable_state() = page.state();
        all.mutable_rows()->MergeFrom(page.rows());
        return true;
      });
  if (!status.ok()) return status;
  return all;
}

template <class Request>
void PrintNotes(Session& session, const Request& request, const v1::HistoryState& state) {
  PrintHistoryNotes(session, state, TimeFrom(request.from()),
                    request.has_to() ? TimeFrom(request.to()) : absl::InfiniteFuture());
}

absl::Status ShowUsage(Session& session, UsageArguments& arguments) {
  v1::GetUsageRequest& request = arguments.request;
  if (const absl::Status status = FillPeriod(arguments.period, session, &request); !status.ok())
    return status;
  for (const std::string& name : arguments.by) request.add_by(kDimensions.at(name));
  const absl::StatusOr<v1::GetUsageResponse> usage =
      AllRows(session, request, &HistoryStub::GetUsage);
  if (!usage.ok()) return usage.status();
  if (PrintMessage(session, *usage)) return absl::OkStatus();
  if (session.options.format == Format::kCsv) {
    session.out() << UsageCsv(request, *usage);
  } else {
    if (usage->rows().empty()) session.err() << "no usage\n";
    session.out() << UsageTable(request, *usage).Render(session.table_style());
  }
  PrintNotes(session, request, usage->state());
  return absl::OkStatus();
}

absl::Status ShowClusterUsage(Session& session, ClusterUsageArguments& arguments) {
  v1::GetCapacityRequest& request = arguments.request;
  if (const absl::Status status = FillPeriod(arguments.period, session, &request); !status.ok())
    return status;
  const absl::StatusOr<v1::GetCapacityResponse> capacity =
      AllRows(session, request, &HistoryStub::GetCapacity);
  if (!capacity.ok()) return capacity.status();
  if (PrintMessage(session, *capacity)) return absl::OkStatus();
  if (session.options.format == Format::kCsv) {
    session.out() << CapacityCsv(request, *capacity);
  } else {
    if (capacity->rows().empty()) session.err() << "no nodes\n";
    session.out()
        << CapacityTable(request, *capacity, arguments.hours).Render(session.table_style());
  }
  PrintNotes(session, request, capacity->state());
  return absl::OkStatus();
}

template <class Value>
std::vector<std::string> NamesIn(const std::map<std::string, Value>& map) {
  std::vector<std::string> names;
  for (const auto& entry : map) names.push_back(entry.first);
  return names;
}

void AddPeriod(CLI::App& command, UsagePeriod* period) {
  command.add_option("--since", period->since,
                     "how long ago (24h, 30d), or a time in UTC (2026-12-01); default 30d. It is "
                     "rounded down to the step, for a total to the hour");
  command.add_option("--until", period->until, "likewise, rounded up; default now");
  command
      .add_option("--step", period->step,
                  "a row for each minute, hour, day or month of UTC, or a total; default total")
      ->check(CLI::IsMember(NamesIn(kSteps)));
}

}  // namespace

void AddUsageCommand(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<UsageArguments>();
  CLI::App* usage = AddCommand(
      app, session, "usage", "show who used how much: GPU-hours, core-hours, and what was lost",
      [arguments](Session& s) { return s.Finish(ShowUsage(s, *arguments)); });
  v1::GetUsageRequest& request = arguments->request;
  usage
      ->add_option("--by", arguments->by,
                   "a row for each queue, user, account, priority class (class) or device model "
                   "(model), or combination of them; default queue")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(NamesIn(kDimensions)));
  AddPeriod(*usage, &arguments->period);
  usage
      ->add_option_function<std::string>(
          "--queue,-q", [&request](const std::string& name) { request.set_queue(name); },
          "only this queue and those below it")
      ->transform(NameOf("queue"));
  usage->add_option_function<std::string>(
      "--user,-u", [&request](const std::string& name) { request.set_user(name); },
      "only jobs accounted to this user");
  usage->add_option_function<std::string>(
      "--account", [&request](const std::string& name) { request.set_account(name); },
      "only jobs with this account");
  usage
      ->add_option_function<int32_t>(
          "--depth", [&request](int32_t depth) { request.set_queue_depth(depth); },
          "with --by queue: add up queues below this depth; 1: those below the root")
      ->check(WholeNumber(1));
}

void AddClusterUsage(CLI::App& cluster, Session& session) {
  auto arguments = std::make_shared<ClusterUsageArguments>();
  CLI::App* usage = AddCommand(
      cluster, session, "usage", "show how the capacity of the nodes was used, in percent",
      [arguments](Session& s) { return s.Finish(ShowClusterUsage(s, *arguments)); });
  AddPeriod(*usage, &arguments->period);
  usage->add_flag_callback(
      "--by-model", [arguments] { arguments->request.set_by_model(true); },
      "a row for each device model");
  usage->add_flag("--hours", arguments->hours, "hours instead of percent");
}

}  // namespace berth
