// The name of a task in the metadata of its calls.
#include "support/task_call.h"

#include <catch2/catch.hpp>

namespace berth {
namespace {

const TaskCall kCall = {
    .job_uid = 12, .task = 3, .attempt = 2, .node_id = 7, .epoch = 9, .key = "0af1", .node = "n1"};

TEST_CASE("task call: written and read") {
  CHECK(EncodeTaskCall(kCall) == "12 3 2 7 9 0af1 n1");
  CHECK(ParseTaskCall(EncodeTaskCall(kCall)) == kCall);
}

TEST_CASE("task call: other texts name no task") {
  const std::string most = "18446744073709551615 4294967295 4294967295 4294967295 1 k n";
  REQUIRE(ParseTaskCall(most).has_value());
  CHECK(ParseTaskCall(most)->job_uid == UINT64_MAX);
  for (const std::string text :
       {"", "12", "12 3 2 7 9 0af1", "12 3 2 7 9 0af1 n1 n2", "12 3 2 7 9 0af1 ", "12 3 2 7 9  n1",
        "-12 3 2 7 9 0af1 n1", "+12 3 2 7 9 0af1 n1", " 12 3 2 7 9 0af1 n1", "12 3 2 7 0x9 0af1 n1",
        "18446744073709551616 3 2 7 9 0af1 n1", "12 4294967296 2 7 9 0af1 n1",
        "12 3 2 7 000000000000000000009 0af1 n1"}) {
    INFO(text);
    CHECK_FALSE(ParseTaskCall(text).has_value());
  }
  CHECK_FALSE(ParseTaskCall("12 3 2 7 9 0af1 " + std::string(2000, 'n')).has_value());
}

TEST_CASE("task call: methods of tasks, by their whole names") {
  for (const char* method : {"JobService.GetJob", "JobService.ListTasks", "JobService.ReadLogs",
                             "JobService.Exec", "JobService.RequeueJob"}) {
    CHECK(IsTaskMethod(method));
  }
  for (const char* method : {"AgentService.Connect", "JobService.ListJobs", "JobService.SubmitJobs",
                             "JobService.GetJob ", "JobService.GetJobs", "GetJob", ""}) {
    CHECK_FALSE(IsTaskMethod(method));
  }
}

}  // namespace
}  // namespace berth
