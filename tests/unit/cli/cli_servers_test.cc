// Commands with several servers, of which one leads.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

// `cli.server` and another one.
struct Cluster {
  Cli cli;
  FakeServer other;
  const std::string list = absl::StrCat(cli.server.address(), ",", other.address());
  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--server", list});
    return cli.RunBare(arguments);
  }
};

TEST_CASE("a submit goes from a standby to the leader, with one request id") {
  Cluster c;
  c.cli.script.StandBy(c.other.address());
  c.other.script.Answer("SubmitJobs", absl::UnavailableError("the answer was lost"));
  c.other.script.Answer("SubmitJobs", Submitted("x"));
  CHECK(c.Run({"submit", "--name", "x", "--queue", "q", "--cpu", "1", "--", "true"}) == 0);
  const auto requests = c.other.script.Requests<v1::SubmitJobsRequest>("SubmitJobs");
  REQUIRE(requests.size() == 2);
  CHECK_FALSE(requests[0].request_id().empty());
  CHECK(requests[0].request_id() == requests[1].request_id());
}

TEST_CASE("the flag --stale takes the answer of a standby, and says what it is") {
  Cluster c;
  c.cli.script.StandBy(c.other.address(), "41");
  v1::ListJobsResponse jobs;
  *jobs.add_jobs() = MakeJob("behind", v1::JOB_RUNNING);
  c.cli.script.Answer("ListJobs", jobs);
  c.other.script.Answer("ListJobs", v1::ListJobsResponse());
  CHECK(c.Run({"job", "list", "--stale"}) == 0);
  CHECK(absl::StrContains(c.cli.out(), "behind"));
  CHECK(c.cli.err() ==
        absl::StrCat("berth: as of revision 41, from the standby ", c.cli.server.address(), "\n"));
  CHECK(c.Run({"job", "list"}) == 0);
  CHECK_FALSE(absl::StrContains(c.cli.out(), "behind"));
}

TEST_CASE("job wait goes on when another server leads") {
  Cluster c;
  c.cli.script.Answer("GetJob", MakeJob("x", v1::JOB_RUNNING));
  v1::WatchResponse begun;
  begun.set_revision(10);
  begun.set_incarnation(9);
  c.cli.script.Stream<v1::WatchResponse>("Watch", {begun}, absl::UnavailableError("it stops"));
  c.cli.script.Stream<v1::WatchResponse>("Watch", {}, absl::UnavailableError("it is gone"));
  v1::WatchResponse end = begun;
  end.set_revision(12);
  end.add_events()->set_job("x");
  end.mutable_events(0)->set_type(v1::ChangeEvent::JOB_CHANGED);
  end.mutable_events(0)->set_job_state(v1::JOB_SUCCEEDED);
  c.other.script.Stream<v1::WatchResponse>("Watch", {begun, end}, absl::OkStatus());
  c.other.script.Answer("GetJob", MakeJob("x", v1::JOB_SUCCEEDED));
  CHECK(c.Run({"job", "wait", "x"}) == 0);
  CHECK(c.cli.out() == "job/x Succeeded\n");
  const auto requests = c.other.script.Requests<v1::WatchRequest>("Watch");
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].from_revision() == 10);
}

TEST_CASE("while nobody leads, a command says so") {
  Cluster c;
  c.cli.script.StandBy("");
  c.other.script.StandBy("");
  CHECK(c.Run({"job", "list"}) == 5);
  CHECK(c.cli.err() == "berth: this server is a standby\n");
}

TEST_CASE("a wrong list of servers is refused") {
  Cli cli;
  CHECK(cli.RunBare({"--server", "a:1,b", "job", "list"}) == 4);
  CHECK(absl::StrContains(cli.err(), "the list of servers: must be HOST:PORT"));
}

}  // namespace
}  // namespace berth
