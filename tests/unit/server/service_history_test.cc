// HistoryService over gRPC.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "berth/v1/history.grpc.pb.h"
#include "tests/unit/server/service_world.h"

namespace berth {
namespace {

using testing::Call;
using testing::ServiceWorld;
using v1::GetUsageRequest;

struct HistoryServiceWorld {
  ServiceWorld world;
  std::unique_ptr<v1::HistoryService::Stub> stub = v1::HistoryService::NewStub(world.channel());
};

v1::GetUsageResponse Usage(v1::HistoryService::Stub& stub, const GetUsageRequest& request) {
  v1::GetUsageResponse response;
  const absl::Status status = Call(stub, &v1::HistoryService::Stub::GetUsage, request, &response);
  INFO(status);
  REQUIRE(status.ok());
  return response;
}

TEST_CASE("service history: what waits is seen at once, and as of now") {
  HistoryServiceWorld history;
  history.world.CreateQueue("team");
  v1::SubmitJobsRequest submit;
  v1::Job& job = *submit.add_jobs();
  job.set_name("j1");
  job.mutable_spec()->set_queue("team");
  job.mutable_spec()->set_user("ada");
  (*job.mutable_spec()->mutable_labels())["account"] = "physics";
  v1::TaskGroup& group = *job.mutable_spec()->add_groups();
  group.set_name("w");
  group.add_command("true");
  group.mutable_resources()->set_cpu_millis(2000);
  v1::SubmitJobsResponse submitted;
  REQUIRE(history.world.Submit(submit, &submitted).ok());
  GetUsageRequest request;
  for (const auto by : {GetUsageRequest::QUEUE, GetUsageRequest::USER, GetUsageRequest::ACCOUNT}) {
    request.add_by(by);
  }
  const absl::Time before = absl::Now();
  absl::SleepFor(absl::Milliseconds(1500));
  const v1::GetUsageResponse answer = Usage(*history.stub, request);
  REQUIRE(answer.rows_size() == 1);
  const v1::UsageRow& row = answer.rows(0);
  CHECK(row.queue() == "team");
  CHECK(row.queue_path() == "team");
  CHECK(row.user() == "ada");
  CHECK(row.account() == "physics");
  CHECK(row.waiting().cpu_milli_seconds() >= 2 * 1500);
  CHECK(row.waiting().cpu_milli_seconds() < 2 * 60'000);
  CHECK(row.held().cpu_milli_seconds() == 0);
  CHECK(answer.state().as_of().seconds() >= absl::ToUnixSeconds(before) + 1);
  CHECK(answer.state().revision() > 0);
  request.set_step(v1::HISTORY_STEP_MINUTE);
  CHECK(absl::IsInvalidArgument([&] {
    v1::GetUsageResponse response;
    return Call(*history.stub, &v1::HistoryService::Stub::GetUsage, request, &response);
  }()));
  request.clear_by();
  request.add_by(GetUsageRequest::QUEUE);
  CHECK(Usage(*history.stub, request).rows_size() >= 1);
  request.set_queue("nobody");
  CHECK(Usage(*history.stub, request).rows_size() == 0);
}

TEST_CASE("service history: ended jobs are listed after they were deleted") {
  HistoryServiceWorld history;
  history.world.MustSubmit({"j1", "j2", "j3"});
  for (const char* name : {"j1", "j2"}) {
    v1::CancelJobRequest cancel;
    cancel.set_name(name);
    v1::Job job;
    REQUIRE(Call(*history.world.jobs, &v1::JobService::Stub::CancelJob, cancel, &job).ok());
  }
  v1::DeleteJobRequest erase;
  erase.set_name("j1");
  v1::DeleteJobResponse erased;
  REQUIRE(Call(*history.world.jobs, &v1::JobService::Stub::DeleteJob, erase, &erased).ok());
  v1::ListEndedJobsRequest request;
  request.set_page_size(1);
  std::vector<std::string> names;
  uint64_t uid = 0;
  for (int pages = 0; pages < 5; ++pages) {
    v1::ListEndedJobsResponse response;
    REQUIRE(Call(*history.stub, &v1::HistoryService::Stub::ListEndedJobs, request, &response).ok());
    for (const v1::EndedJob& job : response.jobs()) {
      names.push_back(job.name());
      uid = job.uid();
      CHECK(job.state() == v1::JOB_CANCELLED);
      CHECK(job.has_end_time());
      CHECK(job.tasks() == 1);
      CHECK_FALSE(job.has_first_start_time());
    }
    request.set_page_token(response.next_page_token());
    if (response.next_page_token().empty()) break;
  }
  CHECK(names == std::vector<std::string>{"j2", "j1"});
  request.Clear();
  request.add_uids(uid);
  v1::ListEndedJobsResponse response;
  REQUIRE(Call(*history.stub, &v1::HistoryService::Stub::ListEndedJobs, request, &response).ok());
  REQUIRE(response.jobs_size() == 1);
  CHECK(response.jobs(0).name() == "j1");
  request.add_states(v1::JOB_RUNNING);
  CHECK(absl::IsInvalidArgument(
      Call(*history.stub, &v1::HistoryService::Stub::ListEndedJobs, request, &response)));
}

TEST_CASE("service history: wrong requests are refused, each with what is wrong") {
  HistoryServiceWorld history;
  const auto refused = [&](const GetUsageRequest& request) {
    v1::GetUsageResponse response;
    return std::string(
        Call(*history.stub, &v1::HistoryService::Stub::GetUsage, request, &response).message());
  };
  GetUsageRequest request;
  request.mutable_from()->set_seconds(100);
  request.mutable_to()->set_seconds(100);
  CHECK_THAT(refused(request), Catch::Matchers::Contains("to: must be after from"));
  request.Clear();
  request.add_by(GetUsageRequest::USER);
  request.add_by(GetUsageRequest::USER);
  CHECK_THAT(refused(request), Catch::Matchers::Contains("is named twice"));
  request.Clear();
  request.set_queue_depth(1);
  CHECK_THAT(refused(request), Catch::Matchers::Contains("queue_depth"));
  request.Clear();
  request.set_page_token("nonsense");
  CHECK_FALSE(refused(request).empty());
}

TEST_CASE("service history: a server that keeps none says so") {
  ServiceWorld world(
      [](config::v1::Server& config) { config.mutable_usage()->set_enabled(false); });
  const auto stub = v1::HistoryService::NewStub(world.channel());
  v1::GetUsageResponse response;
  const absl::Status status =
      Call(*stub, &v1::HistoryService::Stub::GetUsage, GetUsageRequest(), &response);
  CHECK(absl::IsFailedPrecondition(status));
  CHECK_THAT(std::string(status.message()), Catch::Matchers::Contains("usage.enabled"));
}

}  // namespace
}  // namespace berth
