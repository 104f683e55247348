// berth usage, berth cluster usage and berth job ended.
#include <catch2/catch.hpp>

#include "clients/cli/csv.h"
#include "clients/cli/usage_figures.h"
#include "support/proto_time.h"
#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

constexpr int64_t kHour = 3'600'000;  // of one core or device
constexpr int64_t kGibHour = 1024 * 3600;

absl::Time At(const char* text) {
  absl::Time time;
  std::string error;
  REQUIRE(absl::ParseTime(absl::RFC3339_full, text, &time, &error));
  return time;
}

v1::ResourceTime Hours(int64_t gpus, int64_t cores = 0, int64_t gib = 0) {
  v1::ResourceTime time;
  if (gpus != 0) (*time.mutable_count_milli_seconds())["gpu"] = gpus * kHour;
  time.set_cpu_milli_seconds(cores * kHour);
  time.set_memory_mebibyte_seconds(gib * kGibHour);
  return time;
}

template <class Row>
void SetDay(Row* row, const char* from, const char* to) {
  ToProto(At(from), row->mutable_from());
  ToProto(At(to), row->mutable_to());
}

v1::UsageRow UsageOf(const char* queue, const char* user, const v1::ResourceTime& held) {
  v1::UsageRow row;
  SetDay(&row, "2026-11-17T00:00:00Z", "2026-11-18T00:00:00Z");
  row.set_queue(queue);
  row.set_queue_path(std::string("ai/") + queue);
  row.set_user(user);
  *row.mutable_held() = held;
  return row;
}

v1::HistoryState Known(Cli& cli) {
  v1::HistoryState state;
  ToProto(At("2026-10-01T00:00:00Z"), state.mutable_since());
  ToProto(cli.world.Now(), state.mutable_as_of());
  return state;
}

TEST_CASE("usage: GPU-hours first, losses in GPU-hours, and the sum") {
  Cli cli;
  v1::GetUsageResponse first, second;
  *first.add_rows() = UsageOf("nlp", "ada", Hours(12, 48, 96));
  *first.mutable_rows(0)->mutable_lost_to_preemption() = Hours(2, 8);
  *first.mutable_rows(0)->mutable_lost_to_faults() = Hours(1);
  *first.mutable_rows(0)->mutable_paused() = Hours(3);
  first.set_next_page_token("more");
  *first.mutable_state() = Known(cli);
  *second.add_rows() = UsageOf("vision", "", Hours(0, 1));
  cli.script.Answer("GetUsage", first);
  cli.script.Answer("GetUsage", second);
  CHECK(cli.Run({"usage", "--by", "queue,user", "--queue", "queue/ai", "--user", "ada", "--account",
                 "phys", "--depth", "2", "--since", "2026-11-01", "--until", "1h"}) == 0);
  CHECK(cli.out() ==
        "QUEUE   USER  GPU-HOURS  LOST TO PREEMPTION  LOST TO FAULTS  CORE-HOURS  GIB-HOURS\n"
        "nlp     ada          12                   2               1          48         96\n"
        "vision  -             -                   -               -           1          -\n"
        "TOTAL                12                   2               1          49         96\n");
  CHECK(cli.err().empty());
  const auto requests = cli.script.Requests<v1::GetUsageRequest>("GetUsage");
  REQUIRE(requests.size() == 2);
  CHECK(requests[1].page_token() == "more");
  const v1::GetUsageRequest& request = requests[0];
  CHECK(request.by_size() == 2);
  CHECK(request.by(0) == v1::GetUsageRequest::QUEUE);
  CHECK(request.by(1) == v1::GetUsageRequest::USER);
  CHECK(request.queue() == "ai");
  CHECK(request.user() == "ada");
  CHECK(request.account() == "phys");
  CHECK(request.queue_depth() == 2);
  CHECK(request.step() == v1::HISTORY_STEP_TOTAL);
  CHECK(TimeFrom(request.from()) == At("2026-11-01T00:00:00Z"));
  CHECK(TimeFrom(request.to()) == cli.world.Now() - absl::Hours(1));
}

TEST_CASE("usage: of 30 days by queue, if nothing else is asked for") {
  Cli cli;
  cli.script.Answer("GetUsage", v1::GetUsageResponse());
  CHECK(cli.Run({"usage"}) == 0);
  CHECK(cli.err() == "no usage\n");
  const auto request = cli.script.Requests<v1::GetUsageRequest>("GetUsage")[0];
  CHECK(TimeFrom(request.from()) == cli.world.Now() - absl::Hours(24 * 30));
  CHECK_FALSE(request.has_to());
  CHECK(request.by_size() == 1);
  CHECK(request.by(0) == v1::GetUsageRequest::QUEUE);
}

TEST_CASE("usage: losses are in core-hours where nothing has a GPU, and periods in UTC") {
  Cli cli;
  v1::GetUsageResponse usage;
  *usage.add_rows() = UsageOf("", "", Hours(0, 10, 4));
  *usage.mutable_rows(0)->mutable_lost_to_faults() = Hours(0, 5);
  (*usage.mutable_rows(0)->mutable_held()->mutable_count_milli_seconds())["nic"] = kHour / 1000;
  cli.script.Answer("GetUsage", usage);
  CHECK(cli.Run({"usage", "--by", "model", "--step", "day"}) == 0);
  CHECK(
      cli.out() ==
      "PERIOD (UTC)  MODEL  CORE-HOURS  LOST TO PREEMPTION  LOST TO FAULTS  GIB-HOURS  NIC-HOURS\n"
      "2026-11-17    -              10                   -               5          4      "
      "<0.01\n");
  CHECK(cli.Run({"usage", "--step", "month", "--no-headers"}) == 0);
  CHECK(cli.out().find("2026-11 ") == 0);
  CHECK(cli.Run({"usage", "--step", "hour", "--no-headers"}) == 0);
  CHECK(cli.out().find("2026-11-17 00:00 ") == 0);
  CHECK(cli.Run({"usage", "-o", "wide"}) == 0);
  CHECK(cli.out().find("PAUSED  RESERVED  WAITING") != std::string::npos);
}

TEST_CASE("usage -o csv has every figure, exactly, and columns that do not depend on the answer") {
  Cli cli;
  v1::GetUsageResponse usage;
  *usage.add_rows() = UsageOf("nlp", "ada", Hours(1));
  *usage.mutable_rows(0)->mutable_waiting() = Hours(2);
  (*usage.mutable_rows(0)->mutable_held()->mutable_count_milli_seconds())["gpu"] = kHour / 3;
  cli.script.Answer("GetUsage", usage);
  CHECK(cli.Run({"usage", "--by", "queue", "-o", "csv"}) == 0);
  const auto parts = [](const std::string& unit) {
    std::string text = unit;
    for (const char* part :
         {"lost_to_preemption", "lost_to_faults", "paused", "reserved", "waiting"}) {
      text += "," + unit + "_" + part;
    }
    return text;
  };
  CHECK(cli.out() == "from,to,queue,queue_path," + parts("gpu_hours") + "," + parts("core_hours") +
                         "," + parts("memory_gib_hours") +
                         "\n"
                         "2026-11-17T00:00:00Z,2026-11-18T00:00:00Z,nlp,ai/nlp,"
                         "0.333333,0,0,0,0,2,0,0,0,0,0,0,0,0,0,0,0,0\n");
}

TEST_CASE("usage -o json and yaml are the answer of all pages") {
  Cli cli;
  v1::GetUsageResponse page;
  *page.add_rows() = UsageOf("nlp", "", Hours(1));
  *page.mutable_state() = Known(cli);
  page.set_next_page_token("more");
  cli.script.Answer("GetUsage", page);
  page.clear_next_page_token();
  cli.script.Answer("GetUsage", page);
  CHECK(cli.Run({"usage", "-o", "json"}) == 0);
  const std::string out = cli.out();
  CHECK(out.find("\"gpu\": 3600000") != out.rfind("\"gpu\": 3600000"));
  CHECK(out.find("\"asOf\"") == out.rfind("\"asOf\""));
  CHECK(out.find("nextPageToken") == std::string::npos);
  CHECK(cli.Run({"usage", "-o", "name"}) == 2);
}

TEST_CASE("usage: what the figures lack is named on standard error") {
  Cli cli;
  v1::GetUsageResponse usage;
  v1::HistoryState& state = *usage.mutable_state();
  ToProto(At("2026-11-10T08:00:00Z"), state.mutable_since());
  ToProto(At("2026-11-18T12:00:00Z"), state.mutable_as_of());
  v1::HistoryGap& gap = *state.add_gaps();
  ToProto(At("2026-11-12T00:00:00Z"), gap.mutable_from());
  ToProto(At("2026-11-12T01:30:00Z"), gap.mutable_to());
  cli.script.Answer("GetUsage", usage);
  CHECK(cli.Run({"usage", "-o", "csv"}) == 0);
  CHECK(cli.err() ==
        "berth: nothing is known before 2026-11-10 08:00 UTC\n"
        "berth: too little is known of the time from 2026-11-12 00:00 UTC to 2026-11-12 01:30 UTC: "
        "the server kept no history then\n"
        "berth: the figures end at 2026-11-18 12:00 UTC: the server has not counted yet what "
        "followed\n");
  CHECK(cli.Run({"usage", "-o", "csv", "--since", "2026-11-13", "--until", "2026-11-14"}) == 0);
  CHECK(cli.err().empty());
}

TEST_CASE("usage: bad values are refused") {
  Cli cli;
  CHECK(cli.Run({"usage", "--by", "color"}) == 2);
  CHECK(cli.Run({"usage", "--step", "week"}) == 2);
  CHECK(cli.Run({"usage", "--depth", "0"}) == 2);
  CHECK(cli.Run({"usage", "--since", "yesterday"}) == 4);
  CHECK(cli.Run({"cluster", "usage", "--until", "x"}) == 4);
  cli.script.Answer("GetUsage", absl::FailedPreconditionError("the server keeps no history"));
  CHECK(cli.Run({"usage"}) == 1);
  CHECK(cli.err() == "berth: the server keeps no history\n");
}

v1::CapacityRow OneThird() {
  v1::CapacityRow row;
  SetDay(&row, "2026-11-17T00:00:00Z", "2026-11-18T00:00:00Z");
  *row.mutable_total() = Hours(3, 8);
  *row.mutable_held() = Hours(1, 8);
  *row.mutable_free() = Hours(1);
  *row.mutable_down() = Hours(1);
  return row;
}

TEST_CASE("cluster usage: the parts of capacity add up to 100 %") {
  Cli cli;
  v1::GetCapacityResponse capacity;
  *capacity.add_rows() = OneThird();
  cli.script.Answer("GetCapacity", capacity);
  CHECK(cli.Run({"cluster", "usage", "--since", "1d"}) == 0);
  CHECK(cli.out() ==
        "RESOURCE    CAPACITY   HELD  RESERVED   FREE  FRAGMENTED  CORDONED   DOWN  UNHEALTHY\n"
        "gpu-hours          3  33.4%         -  33.3%           -         -  33.3%          -\n"
        "core-hours         8   100%         -      -           -         -      -          -\n");
  CHECK(cli.Run({"cluster", "usage", "--hours", "--step", "day", "--by-model"}) == 0);
  CHECK(
      cli.out() ==
      "PERIOD (UTC)  MODEL  RESOURCE    CAPACITY  HELD  RESERVED  FREE  FRAGMENTED  CORDONED  DOWN"
      "  UNHEALTHY\n"
      "2026-11-17    -      gpu-hours          3     1         -     1           -         -     1"
      "          -\n"
      "2026-11-17    -      core-hours         8     8         -     -           -         -     -"
      "          -\n");
  const auto requests = cli.script.Requests<v1::GetCapacityRequest>("GetCapacity");
  CHECK(TimeFrom(requests[0].from()) == cli.world.Now() - absl::Hours(24));
  CHECK_FALSE(requests[0].by_model());
  CHECK(requests[1].by_model());
  CHECK(requests[1].step() == v1::HISTORY_STEP_DAY);
  CHECK(cli.Run({"cluster", "usage", "-o", "csv"}) == 0);
  CHECK(cli.out().find("\n2026-11-17T00:00:00Z,2026-11-18T00:00:00Z,3,0,1,0,1,0,0,1,0,8,0,8,") !=
        std::string::npos);
}

TEST_CASE("shares by largest remainders add up to 1000") {
  CHECK(PerMille({1, 1, 1}) == std::vector<int>{334, 333, 333});
  CHECK(PerMille({2, 0, 1}) == std::vector<int>{667, 0, 333});
  CHECK(PerMille({0, 0}) == std::vector<int>{0, 0});
  CHECK(PerMille({INT64_MAX, INT64_MAX}) == std::vector<int>{500, 500});
  CHECK(PerMille({1, 999'999}) == std::vector<int>{0, 1000});
}

v1::EndedJob Ended(const char* name, v1::JobState state) {
  v1::EndedJob job;
  job.set_uid(7);
  job.set_name(name);
  job.set_queue("nlp");
  job.set_queue_path("ai/nlp");
  job.set_owner("ada");
  job.set_state(state);
  job.set_message("worker-3 exited with 137, \"killed\"");
  job.set_exit_signal(9);
  job.set_tasks(4);
  job.set_start_count(2);
  job.set_evictions(1);
  ToProto(At("2026-11-18T08:00:00Z"), job.mutable_submit_time());
  ToProto(At("2026-11-18T09:00:00Z"), job.mutable_first_start_time());
  ToProto(At("2026-11-18T10:00:00Z"), job.mutable_last_start_time());
  ToProto(At("2026-11-18T12:00:00Z"), job.mutable_end_time());
  *job.mutable_held() = Hours(8, 16);
  *job.mutable_lost_to_preemption() = Hours(1);
  return job;
}

TEST_CASE("job ended lists jobs that are gone") {
  Cli cli;
  v1::ListEndedJobsResponse list;
  *list.add_jobs() = Ended("train", v1::JOB_FAILED);
  *list.mutable_state() = Known(cli);
  cli.script.Answer("ListEndedJobs", list);
  CHECK(cli.Run({"job", "ended", "--since", "7d", "--until", "2026-11-18T12:30", "-q", "nlp", "-u",
                 "bob", "--owner", "ada", "--account", "phys", "--name", "train*", "--state",
                 "failed,Cancelled"}) == 0);
  CHECK(cli.out() ==
        "NAME   QUEUE  USER  STATE   ENDED                RAN  TASKS  GPU-HOURS  MESSAGE\n"
        "train  nlp    ada   Failed  2026-11-18 12:00:00   2h      4          8  worker-3 exited "
        "with 137, \"killed\"\n");
  CHECK(cli.err().empty());
  const auto request = cli.script.Requests<v1::ListEndedJobsRequest>("ListEndedJobs")[0];
  CHECK(TimeFrom(request.since()) == cli.world.Now() - absl::Hours(7 * 24));
  CHECK(TimeFrom(request.until()) == At("2026-11-18T12:30:00Z"));
  CHECK(request.queue() == "nlp");
  CHECK(request.user() == "bob");
  CHECK(request.owner() == "ada");
  CHECK(request.account() == "phys");
  CHECK(request.name_pattern() == "train*");
  REQUIRE(request.states_size() == 2);
  CHECK(request.states(0) == v1::JOB_FAILED);
  CHECK(request.states(1) == v1::JOB_CANCELLED);
  CHECK(cli.Run({"job", "ended", "-o", "wide"}) == 0);
  CHECK(cli.out().find("signal 9") != std::string::npos);
  CHECK(cli.Run({"job", "ended", "--state", "running"}) == 2);
  CHECK(cli.err().find("is no state of a job that has ended") != std::string::npos);
}

TEST_CASE("job ended: pages, a limit, JSON by the line, and CSV") {
  Cli cli;
  v1::ListEndedJobsResponse page;
  *page.add_jobs() = Ended("a", v1::JOB_SUCCEEDED);
  *page.add_jobs() = Ended("b", v1::JOB_SUCCEEDED);
  page.set_next_page_token("more");
  cli.script.Answer("ListEndedJobs", page);
  CHECK(cli.Run({"job", "ended", "--limit", "3", "-o", "json"}) == 0);
  std::string out = cli.out();
  CHECK(std::count(out.begin(), out.end(), '\n') == 3);
  CHECK(out.find(R"("cpuMilliSeconds":57600000)") != std::string::npos);
  CHECK(cli.script.Requests<v1::ListEndedJobsRequest>("ListEndedJobs").size() == 2);
  CHECK(cli.Run({"job", "ended", "--limit", "1", "-o", "csv"}) == 0);
  out = cli.out();
  CHECK(out.find("uid,name,queue,queue_path,user,owner,") == 0);
  CHECK(out.find("\n7,a,nlp,ai/nlp,,ada,,,Succeeded,2026-11-18T08:00:00Z,2026-11-18T09:00:00Z,"
                 "2026-11-18T10:00:00Z,2026-11-18T12:00:00Z,4,2,0,1,0,9,"
                 "\"worker-3 exited with 137, \"\"killed\"\"\",8,0,1,0,16,0,0,0,0,0,0,0\n") !=
        std::string::npos);
  CHECK(std::count(out.begin(), out.end(), '\n') == 2);
}

TEST_CASE("job ended: no jobs") {
  Cli cli;
  cli.script.Answer("ListEndedJobs", v1::ListEndedJobsResponse());
  CHECK(cli.Run({"job", "ended"}) == 0);
  CHECK(cli.err() == "no jobs ended\n");
  const auto request = cli.script.Requests<v1::ListEndedJobsRequest>("ListEndedJobs")[0];
  CHECK(TimeFrom(request.since()) == cli.world.Now() - absl::Hours(24));
}

TEST_CASE("cells of CSV are quoted where they must be") {
  CHECK(CsvLine({"a", "", "b,c", "d\"e", "f\ng"}) == "a,,\"b,c\",\"d\"\"e\",\"f\ng\"\n");
}

}  // namespace
}  // namespace berth
