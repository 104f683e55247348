// sacct's rows: jobs of the server, and those that only its history has.
#include <catch2/catch.hpp>

#include "clients/slurm/job_archive.h"
#include "clients/slurm/job_fields.h"
#include "clients/slurm/job_json.h"
#include "tests/unit/client/fake_server.h"
#include "tests/unit/client/fake_world.h"

namespace berth {
namespace {

constexpr int64_t kEnd = 1'795'000'000;

// A context that speaks to a fake server.
struct Slurm {
  Slurm() {
    context.connection.client.server = server.address();
    context.connection.auth_socket = "off";
    context.environment = world.environment();
    context.zone = absl::UTCTimeZone();
  }
  std::vector<JobRow> Find(const JobQuery& query, const RowNeeds& needs = {}) {
    const auto rows = FindRows(context, query, needs);
    REQUIRE(rows.ok());
    return *rows;
  }
  FakeServer server;
  FakeWorld world;
  SlurmContext context;
};

v1::EndedJob Gone(uint64_t uid, const std::string& name, v1::JobState state = v1::JOB_SUCCEEDED) {
  v1::EndedJob job;
  job.set_uid(uid);
  job.set_name(name);
  job.set_queue("q");
  job.set_user("ada");
  job.set_state(state);
  job.set_tasks(2);
  job.set_start_count(2);
  job.mutable_submit_time()->set_seconds(kEnd - 300);
  job.mutable_last_start_time()->set_seconds(kEnd - 100);
  job.mutable_end_time()->set_seconds(kEnd);
  v1::EndedGroup& group = *job.add_groups();
  group.set_name("node");
  group.set_replicas(2);
  group.mutable_request()->set_cpu_millis(4000);
  (*group.mutable_request()->mutable_counts())["gpu"] = 8;
  return job;
}

v1::EndedJob MemberOf(uint64_t array, int index) {
  v1::EndedJob job = Gone(array + 1 + static_cast<uint64_t>(index),
                          "job-" + std::to_string(array) + "." + std::to_string(index));
  job.set_series_uid(array);
  return job;
}

v1::Job Kept(uint64_t uid, const std::string& name) {
  v1::Job job;
  job.set_uid(uid);
  job.set_name(name);
  job.mutable_spec()->set_queue("q");
  job.mutable_spec()->set_user("ada");
  job.mutable_spec()->add_groups()->set_name("node");
  job.mutable_status()->set_state(v1::JOB_SUCCEEDED);
  job.mutable_status()->mutable_end_time()->set_seconds(kEnd);
  return job;
}

JobQuery Accounting() {
  return {.missing_is_error = false, .users = {"ada"}, .ended = true, .archive = true};
}

std::vector<std::string> NumbersOf(const std::vector<JobRow>& rows) {
  std::vector<std::string> numbers;
  for (const JobRow& row : rows) numbers.push_back(row.number);
  return numbers;
}

using Words = std::vector<std::string>;

TEST_CASE("slurm archive: jobs that are gone are added, in order and once") {
  Slurm slurm;
  v1::ListJobsResponse kept;
  *kept.add_jobs() = Kept(20, "job-20");
  slurm.server.script.Answer("ListJobs", kept);
  v1::ListEndedJobsResponse first, second;
  *first.add_jobs() = Gone(30, "job-30");
  *first.add_jobs() = Gone(20, "job-20");
  first.set_next_page_token("more");
  *second.add_jobs() = Gone(10, "job-10");
  *second.add_jobs() = MemberOf(40, 3);
  v1::EndedJob array = Gone(40, "job-40");
  array.set_is_series(true);
  *second.add_jobs() = array;
  slurm.server.script.Answer("ListEndedJobs", first);
  slurm.server.script.Answer("ListEndedJobs", second);
  JobQuery query = Accounting();
  query.since = absl::FromUnixSeconds(kEnd - 50);
  const std::vector<JobRow> rows = slurm.Find(query);
  CHECK(NumbersOf(rows) == Words{"10", "20", "30", "40_3"});
  CHECK_FALSE(rows[1].archived.has_value());  // the server has more of it
  CHECK(rows[2].archived.has_value());
  const auto requests = slurm.server.script.Requests<v1::ListEndedJobsRequest>("ListEndedJobs");
  CHECK(requests[0].user() == "ada");
  CHECK(requests[0].since().seconds() == kEnd - 50);
  CHECK(requests.back().owner() == "ada");
  CHECK(requests.back().user().empty());
}

TEST_CASE("slurm archive: filters of sacct apply to jobs that are gone") {
  Slurm slurm;
  slurm.server.script.Answer("ListJobs", v1::ListJobsResponse());
  v1::ListEndedJobsResponse gone;
  *gone.add_jobs() = Gone(10, "job-10");
  *gone.add_jobs() = Gone(11, "job-11", v1::JOB_FAILED);
  (*gone.mutable_jobs(1)->mutable_labels())["slurm/account"] = "phys";
  slurm.server.script.Answer("ListEndedJobs", gone);
  JobQuery query = Accounting();
  query.states = {"FAILED"};
  CHECK(NumbersOf(slurm.Find(query)) == Words{"11"});
  query = Accounting();
  query.accounts = {"phys"};
  CHECK(NumbersOf(slurm.Find(query)) == Words{"11"});
  query = Accounting();
  query.until = absl::FromUnixSeconds(kEnd - 400);
  CHECK(slurm.Find(query).empty());
  query = Accounting();
  query.archive = false;  // squeue
  CHECK(slurm.Find(query).empty());
}

TEST_CASE("slurm archive: by number, of jobs, arrays and indexes") {
  Slurm slurm;
  slurm.server.script.Answer("GetJob", absl::NotFoundError("no"));
  v1::ListEndedJobsResponse by_uid, indexes, members;
  *by_uid.add_jobs() = Gone(10, "job-10");
  v1::EndedJob array = Gone(40, "sweep");
  array.set_is_series(true);
  *by_uid.add_jobs() = array;
  for (int i = 0; i < 3; ++i) *indexes.add_jobs() = MemberOf(50, i);
  *members.add_jobs() = Gone(41, "sweep.0");
  members.mutable_jobs(0)->set_series_uid(40);
  slurm.server.script.Answer("ListEndedJobs", by_uid);
  slurm.server.script.Answer("ListEndedJobs", indexes);
  slurm.server.script.Answer("ListEndedJobs", members);
  JobQuery query = Accounting();
  query.users.clear();
  query.numbers = {{.uid = 10, .index = {}}, {.uid = 40, .index = {}}, {50, 2}, {50, 0}, {50, 9}};
  CHECK(NumbersOf(slurm.Find(query)) == Words{"10", "41", "50_0", "50_2"});
  const auto requests = slurm.server.script.Requests<v1::ListEndedJobsRequest>("ListEndedJobs");
  REQUIRE(requests.size() == 3);
  CHECK(requests[0].uids_size() == 2);
  CHECK(requests[1].name_pattern() == "job-50.*");
  CHECK(requests[2].name_pattern() == "sweep.*");
}

TEST_CASE("slurm archive: a server without a history") {
  for (const absl::Status& status :
       {absl::FailedPreconditionError("no history"), absl::UnimplementedError("old")}) {
    Slurm slurm;
    v1::ListJobsResponse kept;
    *kept.add_jobs() = Kept(20, "job-20");
    slurm.server.script.Answer("ListJobs", kept);
    slurm.server.script.Answer("ListEndedJobs", status);
    CHECK(NumbersOf(slurm.Find(Accounting())) == Words{"20"});
  }
  Slurm slurm;
  slurm.server.script.Answer("ListJobs", v1::ListJobsResponse());
  slurm.server.script.Answer("ListEndedJobs", absl::PermissionDeniedError("no"));
  CHECK(absl::IsPermissionDenied(FindRows(slurm.context, Accounting(), {}).status()));
}

TEST_CASE("slurm archive: fields of a job that is gone") {
  Slurm slurm;
  slurm.server.script.Answer("ListJobs", v1::ListJobsResponse());
  v1::ListEndedJobsResponse gone;
  v1::EndedJob& job = *gone.add_jobs();
  job = Gone(10, "job-10", v1::JOB_FAILED);
  job.set_message("node-0 ran out of memory");
  job.set_exit_code(137);
  job.set_exit_signal(9);
  slurm.server.script.Answer("ListEndedJobs", gone);
  // Calls for tasks and the rest would fail: the script has none.
  const std::vector<JobRow> rows = slurm.Find(Accounting(), {.tasks = true, .whole = true});
  REQUIRE(rows.size() == 1);
  const auto columns = ParseAccountNames(
      "JobID,State,ExitCode,Elapsed,AllocCPUS,NNodes,AllocTRES,NodeList,Timelimit,Priority,"
      "Restarts");
  REQUIRE(columns.ok());
  std::string line;
  const FieldContext in{.now = slurm.world.Now(), .zone = absl::UTCTimeZone(), .accounting = true};
  for (const JobColumn& column : *columns) line += column.field->text(rows[0], in) + "|";
  CHECK(line ==
        "10|OUT_OF_MEMORY|0:9|00:01:40|8|2|billing=8,cpu=8,node=2,gres/gpu=16|Unknown|Unknown||1|");
  const std::string json = JobsAsJson(rows, in);
  CHECK(json.find("SIGNALED") != std::string::npos);
}

}  // namespace
}  // namespace berth
