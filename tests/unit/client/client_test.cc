#include "clients/cpp/client.h"

#include <catch2/catch.hpp>

#include "tests/unit/client/fake_server.h"
#include "tests/unit/client/fake_world.h"

namespace berth {
namespace {

struct Connected {
  FakeServer server;
  FakeWorld world;
  std::unique_ptr<Client> client;

  Connected() {
    ClientOptions options;
    options.server = server.address();
    client = *Client::Connect(options, world.environment());
  }
};

v1::SubmitJobsRequest OneJob() {
  v1::SubmitJobsRequest request;
  request.add_jobs()->set_name("a");
  return request;
}

TEST_CASE("a submit that is tried again carries the same request_id") {
  Connected c;
  c.server.script.Answer("SubmitJobs", absl::UnavailableError("restarting"));
  c.server.script.Answer("SubmitJobs", RetryLaterError(absl::StatusCode::kResourceExhausted, "full",
                                                       absl::Seconds(2)));
  v1::SubmitJobsResponse answer;
  answer.add_jobs()->set_uid(7);
  c.server.script.Answer("SubmitJobs", answer);
  const auto response = c.client->Submit(OneJob());
  REQUIRE(response.ok());
  CHECK(response->jobs(0).uid() == 7);
  const auto requests = c.server.script.Requests<v1::SubmitJobsRequest>("SubmitJobs");
  REQUIRE(requests.size() == 3);
  CHECK(requests[0].request_id().size() == 32);
  CHECK(requests[1].request_id() == requests[0].request_id());
  CHECK(requests[2].request_id() == requests[0].request_id());
  REQUIRE(c.world.sleeps.size() == 2);
  CHECK(c.world.sleeps[1] >= absl::Seconds(2));
  CHECK(c.client->Submit(OneJob()).ok());
  CHECK(c.server.script.Requests<v1::SubmitJobsRequest>("SubmitJobs")[3].request_id() !=
        requests[0].request_id());
}

TEST_CASE("a request_id that the caller gave is kept") {
  Connected c;
  c.server.script.Answer("SubmitJobs", v1::SubmitJobsResponse());
  v1::SubmitJobsRequest request = OneJob();
  request.set_request_id("mine");
  CHECK(c.client->Submit(request).ok());
  CHECK(c.server.script.Requests<v1::SubmitJobsRequest>("SubmitJobs")[0].request_id() == "mine");
}

TEST_CASE("violations arrive with their paths") {
  Connected c;
  c.server.script.Answer("SubmitJobs", ViolationsError(absl::StatusCode::kInvalidArgument,
                                                       {{"jobs[0].name", "too long"},
                                                        {"jobs[0].spec.queue", "required"}}));
  const absl::Status status = c.client->Submit(OneJob()).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(ViolationsOf(status) ==
        std::vector<Violation>{{"jobs[0].name", "too long"}, {"jobs[0].spec.queue", "required"}});
  CHECK(c.world.sleeps.empty());
}

TEST_CASE("a delete whose first answer was lost takes not found for done") {
  Connected c;
  c.server.script.Answer("DeleteJob", absl::UnavailableError("lost"));
  c.server.script.Answer("DeleteJob", absl::NotFoundError("no such job"));
  CHECK(c.client->DeleteJob("a").ok());
  CHECK(absl::IsNotFound(c.client->DeleteJob("a")));
}

TEST_CASE("lists go on over all pages") {
  Connected c;
  v1::ListJobsResponse first;
  first.add_jobs()->set_name("a");
  first.set_next_page_token("t");
  v1::ListJobsResponse empty;  // a page may hold nothing and still not be the last
  empty.set_next_page_token("u");
  v1::ListJobsResponse last;
  last.add_jobs()->set_name("b");
  c.server.script.Answer("ListJobs", first);
  c.server.script.Answer("ListJobs", empty);
  c.server.script.Answer("ListJobs", last);
  std::string names;
  const auto method = &v1::JobService::StubInterface::ListJobs;
  const absl::Status status =
      c.client->List<v1::JobService::StubInterface, v1::ListJobsRequest, v1::ListJobsResponse>(
          method, v1::ListJobsRequest(), [&](const v1::ListJobsResponse& page) {
            for (const v1::Job& job : page.jobs()) names += job.name();
            return true;
          });
  CHECK(status.ok());
  CHECK(names == "ab");
  const auto requests = c.server.script.Requests<v1::ListJobsRequest>("ListJobs");
  REQUIRE(requests.size() == 3);
  CHECK(requests[0].page_token() == "");
  CHECK(requests[1].page_token() == "t");
  CHECK(requests[2].page_token() == "u");
}

v1::WatchResponse At(uint64_t revision, const std::string& job = "") {
  v1::WatchResponse response;
  response.set_revision(revision);
  if (!job.empty()) response.add_events()->set_job(job);
  return response;
}

TEST_CASE("a watch goes on after the last revision when its connection breaks") {
  Connected c;
  c.server.script.Stream<v1::WatchResponse>("Watch", {At(10), At(11, "a")},
                                            absl::UnavailableError("restart"));
  c.server.script.Stream<v1::WatchResponse>("Watch", {}, absl::UnavailableError("still away"));
  c.server.script.Stream<v1::WatchResponse>("Watch", {At(11), At(12, "b")}, absl::OkStatus());
  c.server.script.Stream<v1::WatchResponse>("Watch", {At(13, "c")}, absl::OkStatus());
  std::string seen;
  const absl::Status status =
      c.client->Watch(v1::WatchRequest(), [&](const v1::WatchResponse& response) {
        for (const auto& event : response.events()) seen += event.job();
        return seen.size() < 3;
      });
  CHECK(status.ok());
  CHECK(seen == "abc");
  const auto requests = c.server.script.Requests<v1::WatchRequest>("Watch");
  REQUIRE(requests.size() == 4);
  CHECK(requests[0].from_revision() == 0);
  CHECK(requests[1].from_revision() == 11);
  CHECK(requests[2].from_revision() == 11);
  CHECK(requests[3].from_revision() == 12);
}

TEST_CASE("a watch ends with what is no broken connection, and after its time") {
  Connected c;
  c.server.script.Stream<v1::WatchResponse>("Watch", {}, absl::OutOfRangeError("aged out"));
  const auto more = [](const v1::WatchResponse&) { return true; };
  CHECK(absl::IsOutOfRange(c.client->Watch(v1::WatchRequest(), more)));
  Connected d;
  d.server.script.Stream<v1::WatchResponse>("Watch", {}, absl::UnavailableError("away"));
  CHECK(absl::IsDeadlineExceeded(d.client->Watch(v1::WatchRequest(), more, absl::Seconds(20))));
}

TEST_CASE("TLS files that are not there are told at once") {
  ClientOptions options;
  options.tls = {"/nonexistent/cert", "/nonexistent/key", "/nonexistent/ca"};
  CHECK(absl::IsNotFound(Client::Connect(options).status()));
  options.tls.ca = "";
  CHECK(absl::IsInvalidArgument(Client::Connect(options).status()));
}

}  // namespace
}  // namespace berth
