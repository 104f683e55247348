// What is passed on to berthd, and how messages become JSON and back.
#include "berth/v1/job.pb.h"
#include "catch2/catch.hpp"
#include "clients/web/connect_error.h"
#include "clients/web/methods.h"
#include "support/errors.h"

namespace berth::web {
namespace {

TEST_CASE("methods: what is on the list exists, and is neither a stream nor a way to more rights") {
  for (const std::string& name : PassedMethods()) {
    INFO(name);
    std::string path = "/berth.v1." + name;
    path[path.rfind('.')] = '/';
    const auto method = MethodOf(path);
    REQUIRE(method.ok());
    CHECK_FALSE((*method)->client_streaming());
    CHECK_FALSE((*method)->server_streaming());
    const bool reads = name.find(".Get") != std::string::npos ||
                       name.find(".List") != std::string::npos || name == "AccessService.WhoAmI" ||
                       name == "AccessService.CheckAccess" || name == "ExplainService.ExplainJob" ||
                       name == "ExplainService.EstimateJob";
    CHECK(IsRead(**method) == reads);
  }
}

TEST_CASE("methods: others are refused by name") {
  for (const char* name : {"JobService/Exec", "JobService/ReadLogs", "ClusterService/Backup",
                           "ClusterService/CopyStore", "AccessService/ChangeAccess",
                           "NodeService/CreateJoinToken", "NodeService/DeleteNode"}) {
    const absl::Status status = MethodOf(std::string("/berth.v1.") + name).status();
    CHECK(absl::IsUnimplemented(status));
  }
  CHECK(MethodOf("/berth.v1.JobService/Exec").status().message() ==
        "JobService.Exec is not offered over HTTP; use berth, or gRPC");
  for (const char* path :
       {"", "/", "/berth.v1.", "/berth.v1.JobService", "/berth.v1.JobService/",
        "/berth.v1.JobService/Nothing", "/berth.v1.JobService/GetJob/", "/x.v1.JobService/GetJob",
        "berth.v1.JobService/GetJob", "/berth.v1.WatchService/Watch"}) {
    INFO(path);
    CHECK(absl::IsNotFound(MethodOf(path).status()));
  }
}

TEST_CASE("methods: JSON to bytes and back") {
  const auto method = MethodOf("/berth.v1.JobService/GetJob");
  REQUIRE(method.ok());
  const auto bytes = RequestFromJson(**method, R"({"name": "train"})");
  REQUIRE(bytes.ok());
  berth::v1::GetJobRequest request;
  REQUIRE(request.ParseFromString(*bytes));
  CHECK(request.name() == "train");
  CHECK(RequestFromJson(**method, "").ok());
  for (const char* json : {"[]", "nonsense", R"({"nam": "x"})", R"({"name": 1})", "{", "null"}) {
    INFO(json);
    CHECK(absl::IsInvalidArgument(RequestFromJson(**method, json).status()));
  }
  berth::v1::Job job;
  job.set_name("</script>\xe2\x80\xae");
  job.set_uid(uint64_t{1} << 52);
  const auto json = AnswerToJson(**method, job.SerializeAsString());
  REQUIRE(json.ok());
  CHECK(json->find("\"uid\":4503599627370496") != std::string::npos);
  CHECK_FALSE(AnswerToJson(**method, "\xff\xff").ok());
}

TEST_CASE("errors: Connect's codes, and the violations of a request") {
  const absl::Status status = ViolationsError(absl::StatusCode::kInvalidArgument,
                                              {{.field = "jobs[0].name", .description = "empty"}});
  const WebAnswer answer = ErrorAnswer(status);
  CHECK(answer.code == 400);
  CHECK(answer.body.find(R"("code":"invalid_argument")") != std::string::npos);
  CHECK(answer.body.find(R"("field":"jobs[0].name")") != std::string::npos);
  CHECK(ErrorAnswer(absl::UnauthenticatedError("x")).code == 401);
  CHECK(ErrorAnswer(absl::PermissionDeniedError("x")).code == 403);
  CHECK(ErrorAnswer(absl::NotFoundError("x")).code == 404);
  CHECK(ErrorAnswer(absl::ResourceExhaustedError("x")).code == 429);
  CHECK(ErrorAnswer(absl::UnimplementedError("x")).code == 501);
  CHECK(ErrorAnswer(absl::UnavailableError("x")).code == 503);
  CHECK(ErrorAnswer(absl::InternalError("bad \xff byte")).body.find("bad ? byte") !=
        std::string::npos);
}

}  // namespace
}  // namespace berth::web
