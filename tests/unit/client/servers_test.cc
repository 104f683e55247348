// A client with several servers, of which one leads.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "clients/cpp/client.h"
#include "tests/unit/client/fake_server.h"
#include "tests/unit/client/fake_world.h"

namespace berth {
namespace {

using JobStub = v1::JobService::StubInterface;

// Servers a and b. In their lists, `dead` is an address where nobody listens.
struct Cluster {
  FakeServer a, b;
  const std::string dead = FakeServer().address();
  FakeWorld world;

  std::unique_ptr<Client> Connect(const std::vector<std::string>& servers,
                                  ClientOptions options = {}) {
    options.server = absl::StrJoin(servers, ",");
    return *Client::Connect(options, world.environment());
  }
  std::unique_ptr<Client> Connect() { return Connect({a.address(), b.address()}); }
};

v1::Job Named(const std::string& name) {
  v1::Job job;
  job.set_name(name);
  return job;
}

TEST_CASE("servers: a client goes to the leader that a standby names, and stays there") {
  Cluster c;
  FakeServer never;
  c.a.script.StandBy(c.b.address());
  c.b.script.Answer("GetJob", Named("x"));
  const auto client = c.Connect({c.a.address(), never.address(), c.b.address()});
  for (int i = 0; i < 3; ++i) {
    CHECK(client->Call(&JobStub::GetJob, v1::GetJobRequest())->name() == "x");
  }
  CHECK(client->server() == c.b.address());
  CHECK(c.a.script.refused() == 1);
  CHECK(never.script.Requests<v1::GetJobRequest>("GetJob").empty());
  CHECK(c.world.sleeps.empty());
}

TEST_CASE("servers: a client goes to no address that is not configured") {
  Cluster c;
  FakeServer stranger;
  c.a.script.StandBy(stranger.address());
  c.b.script.Answer("GetJob", Named("x"));
  CHECK(c.Connect()->Call(&JobStub::GetJob, v1::GetJobRequest()).ok());
  CHECK(stranger.script.Requests<v1::GetJobRequest>("GetJob").empty());
}

TEST_CASE("servers: a dead first server costs little") {
  Cluster c;
  c.a.script.Answer("GetJob", Named("x"));
  const absl::Time begin = absl::Now();
  const auto client = c.Connect({c.dead, c.a.address()});
  CHECK(client->Call(&JobStub::GetJob, v1::GetJobRequest()).ok());
  CHECK(absl::Now() - begin < absl::Seconds(1));
  CHECK(c.world.sleeps.empty());
}

// Takes connections into its backlog, and says nothing.
class SilentPort {
 public:
  SilentPort() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(bind(fd_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    REQUIRE(listen(fd_, 16) == 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  ~SilentPort() { close(fd_); }
  const std::string& address() const { return address_; }

 private:
  const int fd_;
  std::string address_;
};

TEST_CASE("servers: a first server that does not answer costs at most a connect time-out") {
  Cluster c;
  const SilentPort silent;
  c.a.script.Answer("GetJob", Named("x"));
  const absl::Time begin = absl::Now();
  const auto client = c.Connect({silent.address(), c.a.address()});
  CHECK(client->Call(&JobStub::GetJob, v1::GetJobRequest()).ok());
  CHECK(absl::Now() - begin < absl::Seconds(3));
}

TEST_CASE("servers: while nobody leads, a client asks with waits of at most a second") {
  Cluster c;
  c.a.script.StandBy("");
  c.b.script.StandBy("");
  const auto client = c.Connect();
  const absl::Status status = client->Call(&JobStub::GetJob, v1::GetJobRequest()).status();
  CHECK(absl::IsUnavailable(status));
  CHECK(c.a.script.refused() > 5);
  CHECK(c.b.script.refused() > 5);
  for (const absl::Duration sleep : c.world.sleeps) CHECK(sleep <= absl::Seconds(1));
}

TEST_CASE("servers: a submit that is repeated at another server has the same request id") {
  Cluster c;
  c.a.script.Answer("SubmitJobs", absl::UnavailableError("the answer was lost"));
  c.b.script.StandBy(c.a.address());
  v1::SubmitJobsResponse answer;
  answer.add_jobs()->set_uid(7);
  c.a.script.Answer("SubmitJobs", answer);
  v1::SubmitJobsRequest request;
  request.add_jobs()->set_name("x");
  CHECK(c.Connect()->Submit(request).ok());
  CHECK(c.b.script.refused() >= 1);
  const auto requests = c.a.script.Requests<v1::SubmitJobsRequest>("SubmitJobs");
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].request_id().size() == 32);
  CHECK(requests[0].request_id() == requests[1].request_id());
}

TEST_CASE("servers: not found is no success after a refusal of a standby or of a dead server") {
  Cluster c;
  c.a.script.StandBy(c.b.address());
  c.b.script.Answer("DeleteJob", absl::NotFoundError("no such job"));
  CHECK(absl::IsNotFound(c.Connect({c.dead, c.a.address(), c.b.address()})->DeleteJob("x")));
  c.a.script.Lead();
  c.a.script.Answer("DeleteJob", absl::UnavailableError("the answer was lost"));
  CHECK(c.Connect()->DeleteJob("x").ok());
}

v1::WatchResponse At(uint64_t revision, const std::string& job = "") {
  v1::WatchResponse response;
  response.set_revision(revision);
  response.set_incarnation(9);
  if (!job.empty()) response.add_events()->set_job(job);
  return response;
}

TEST_CASE("servers: a watch goes on at the new leader, without loss or repetition") {
  Cluster c;
  c.a.script.Stream<v1::WatchResponse>("Watch", {At(10), At(11, "x")},
                                       absl::UnavailableError("the server stops"));
  c.b.script.Stream<v1::WatchResponse>("Watch", {At(11), At(12, "y")}, absl::OkStatus());
  c.b.script.StandBy(c.a.address());
  std::string seen;
  const absl::Status status =
      c.Connect()->Watch(v1::WatchRequest(), [&](const v1::WatchResponse& response) {
        for (const auto& event : response.events()) seen += event.job();
        if (seen == "x") {
          c.a.script.StandBy(c.b.address());
          c.b.script.Lead();
        }
        return seen.size() < 2;
      });
  CHECK(status.ok());
  CHECK(seen == "xy");
  const auto requests = c.b.script.Requests<v1::WatchRequest>("Watch");
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].from_revision() == 11);
  CHECK(requests[0].incarnation() == 9);
}

v1::ReadLogsResponse LogAt(int64_t bytes, const std::string& data = "") {
  v1::ReadLogsResponse response;
  response.set_data(data);
  response.set_attempt(1);
  response.mutable_next()->set_stdout_bytes(bytes);
  return response;
}

TEST_CASE("servers: a followed log goes on at the new leader, without loss or repetition") {
  Cluster c;
  c.a.script.Stream<v1::ReadLogsResponse>("ReadLogs", {LogAt(0), LogAt(3, "abc")},
                                          absl::CancelledError("the server stops"));
  c.b.script.Stream<v1::ReadLogsResponse>("ReadLogs", {LogAt(3), LogAt(5, "de")}, absl::OkStatus());
  v1::ReadLogsRequest request;
  request.set_follow(true);
  std::string seen;
  CHECK(c.Connect()
            ->ReadLogs(request,
                       [&](const v1::ReadLogsResponse& answer) {
                         seen += answer.data();
                         if (seen == "abc") c.a.script.StandBy("");
                         return true;
                       })
            .ok());
  CHECK(seen == "abcde");
  const auto requests = c.b.script.Requests<v1::ReadLogsRequest>("ReadLogs");
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].from().stdout_bytes() == 3);
}

TEST_CASE("servers: a call that must not be repeated is made where a server takes it, once") {
  Cluster c;
  c.a.script.StandBy(c.b.address());
  c.b.script.Answer("GetJob", absl::UnavailableError("broken in the middle"));
  const auto client = c.Connect({c.dead, c.a.address(), c.b.address()});
  const absl::Status status = client->CallOnce([&](grpc::ClientContext* context) {
    v1::Job job;
    return client->stub<v1::JobService>().GetJob(context, v1::GetJobRequest(), &job);
  });
  CHECK(status.message() == "broken in the middle");
  CHECK(c.b.script.Requests<v1::GetJobRequest>("GetJob").size() == 1);
}

TEST_CASE("servers: a standby answers who accepts that it may be behind") {
  Cluster c;
  c.a.script.StandBy(c.b.address(), "41");
  c.a.script.Answer("GetJob", Named("behind"));
  c.b.script.Answer("GetJob", Named("now"));
  CHECK(c.Connect()->Call(&JobStub::GetJob, v1::GetJobRequest())->name() == "now");
  ClientOptions options;
  options.stale = true;
  const auto client = c.Connect({c.a.address(), c.b.address()}, options);
  CHECK(client->Call(&JobStub::GetJob, v1::GetJobRequest())->name() == "behind");
  REQUIRE(client->stale().has_value());
  CHECK(client->stale()->revision == "41");
  CHECK(client->stale()->server == c.a.address());
  const auto leader = c.Connect({c.b.address(), c.a.address()}, options);
  CHECK(leader->Call(&JobStub::GetJob, v1::GetJobRequest())->name() == "now");
  CHECK_FALSE(leader->stale().has_value());
}

TEST_CASE("servers: a wrong list is refused") {
  const auto message = [](const std::string& list) {
    ClientOptions options;
    options.server = list;
    return std::string(Client::Connect(options).status().message());
  };
  CHECK(message("a:1,a:1") == "the list of servers: names a:1 twice");
  CHECK(absl::StrContains(message("a:1,"), "is empty"));
  CHECK(message("a:1, b:2") == "");
}

}  // namespace
}  // namespace berth
