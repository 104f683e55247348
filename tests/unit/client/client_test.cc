#include "clients/cpp/client.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
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

TEST_CASE("a retried submit carries the same request_id") {
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

TEST_CASE("a request_id of the caller is kept") {
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

TEST_CASE("a delete whose first answer was lost treats not found as success") {
  Connected c;
  c.server.script.Answer("DeleteJob", absl::UnavailableError("lost"));
  c.server.script.Answer("DeleteJob", absl::NotFoundError("no such job"));
  CHECK(c.client->DeleteJob("a").ok());
  CHECK(absl::IsNotFound(c.client->DeleteJob("a")));
}

TEST_CASE("lists continue over all pages") {
  Connected c;
  v1::ListJobsResponse first;
  first.add_jobs()->set_name("a");
  first.set_next_page_token("t");
  v1::ListJobsResponse empty;  // a page may be empty and still not be the last
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
  response.set_incarnation(9);
  return response;
}

TEST_CASE("a watch continues after the last revision when its connection breaks") {
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
  CHECK(requests[0].incarnation() == 0);
  CHECK(requests[1].from_revision() == 11);
  CHECK(requests[1].incarnation() == 9);
  CHECK(requests[2].from_revision() == 11);
  CHECK(requests[3].from_revision() == 12);
}

TEST_CASE("a watch ends on an error that is no broken connection, and after its timeout") {
  Connected c;
  c.server.script.Stream<v1::WatchResponse>("Watch", {}, absl::OutOfRangeError("aged out"));
  const auto more = [](const v1::WatchResponse&) { return true; };
  CHECK(absl::IsOutOfRange(c.client->Watch(v1::WatchRequest(), more)));
  Connected d;
  d.server.script.Stream<v1::WatchResponse>("Watch", {}, absl::UnavailableError("away"));
  CHECK(absl::IsDeadlineExceeded(d.client->Watch(v1::WatchRequest(), more, absl::Seconds(20))));
}

v1::ReadLogsResponse LogAt(int64_t stdout_bytes, const std::string& data = "") {
  v1::ReadLogsResponse response;
  response.set_data(data);
  response.set_attempt(2);
  response.mutable_next()->set_stdout_bytes(stdout_bytes);
  response.mutable_next()->set_stderr_bytes(7);
  return response;
}

v1::ReadLogsRequest LogOf(bool follow) {
  v1::ReadLogsRequest request;
  request.set_job("a");
  request.set_tail_lines(5);
  request.set_follow(follow);
  return request;
}

TEST_CASE("a log continues after the last byte read when its connection breaks") {
  for (const bool follow : {true, false}) {
    Connected c;
    Script& script = c.server.script;
    script.Stream<v1::ReadLogsResponse>("ReadLogs", {}, absl::UnavailableError("no agent yet"));
    script.Stream<v1::ReadLogsResponse>("ReadLogs", {LogAt(90), LogAt(93, "abc")},
                                        absl::UnavailableError("the server is stopping"));
    script.Stream<v1::ReadLogsResponse>("ReadLogs", {LogAt(93)}, absl::UnavailableError("away"));
    script.Stream<v1::ReadLogsResponse>("ReadLogs", {LogAt(93), LogAt(95, "de")}, absl::OkStatus());
    std::string seen;
    CHECK(c.client
              ->ReadLogs(LogOf(follow),
                         [&](const v1::ReadLogsResponse& answer) {
                           seen += answer.data();
                           return true;
                         })
              .ok());
    CHECK(seen == "abcde");
    const auto requests = script.Requests<v1::ReadLogsRequest>("ReadLogs");
    REQUIRE(requests.size() == 4);
    CHECK(requests[1].tail_lines() == 5);
    CHECK_FALSE(requests[1].has_from());
    for (const int i : {2, 3}) {
      CHECK(requests[static_cast<size_t>(i)].from().stdout_bytes() == 93);
      CHECK(requests[static_cast<size_t>(i)].from().stderr_bytes() == 7);
      CHECK(requests[static_cast<size_t>(i)].attempt() == 2);
      CHECK(requests[static_cast<size_t>(i)].tail_lines() == 0);
      CHECK(requests[static_cast<size_t>(i)].follow() == follow);
    }
  }
}

TEST_CASE(
    "a log that is unavailable ends: at once, after the timeout, or if its position is unknown") {
  const auto read = [](Connected& c, bool follow) {
    return c.client->ReadLogs(LogOf(follow), [](const v1::ReadLogsResponse&) { return true; });
  };
  const absl::Status away = absl::UnavailableError("away");
  Connected missing;
  missing.server.script.Stream<v1::ReadLogsResponse>("ReadLogs", {LogAt(0)},
                                                     absl::NotFoundError("rotated away"));
  CHECK(absl::IsNotFound(read(missing, true)));
  CHECK(missing.world.sleeps.empty());
  for (const bool follow : {true, false}) {
    Connected never;
    never.server.script.Stream<v1::ReadLogsResponse>("ReadLogs", {}, away);
    const absl::Duration begin = never.world.Steady();
    CHECK(absl::IsUnavailable(read(never, follow)));
    CHECK(never.world.Steady() - begin <= ClientOptions().timeout);
    CHECK(never.world.sleeps.size() > 3);
  }
  Connected broken;
  broken.server.script.Stream<v1::ReadLogsResponse>("ReadLogs", {LogAt(0)}, away);
  broken.server.script.Stream<v1::ReadLogsResponse>("ReadLogs", {}, away);
  CHECK(absl::IsUnavailable(read(broken, false)));
  // An agent from before positions existed.
  Connected old;
  v1::ReadLogsResponse placeless = LogAt(0, "abc");
  placeless.clear_next();
  old.server.script.Stream<v1::ReadLogsResponse>("ReadLogs", {placeless}, away);
  CHECK(absl::IsUnavailable(read(old, true)));
  CHECK(old.world.sleeps.empty());
}

TEST_CASE("a followed log waits for its server without limit, and ends when the caller stops") {
  Connected c;
  c.server.script.Stream<v1::ReadLogsResponse>("ReadLogs", {LogAt(0)}, absl::UnavailableError("x"));
  for (int i = 0; i < 100; ++i) {
    c.server.script.Stream<v1::ReadLogsResponse>("ReadLogs", {}, absl::UnavailableError("x"));
  }
  c.server.script.Stream<v1::ReadLogsResponse>("ReadLogs", {LogAt(0), LogAt(1, "a")},
                                               absl::UnavailableError("x"));
  CHECK(c.client
            ->ReadLogs(LogOf(true),
                       [](const v1::ReadLogsResponse& answer) { return answer.data().empty(); })
            .ok());
  CHECK(c.world.sleeps.size() == 101);
}

// A port that accepts connections, closes them at once, and counts them.
class ClosingPort {
 public:
  ClosingPort() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(bind(fd_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    REQUIRE(listen(fd_, 16) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (int peer; (peer = accept(fd_, nullptr, nullptr)) >= 0; ++connections_) close(peer);
    });
  }
  ~ClosingPort() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    close(fd_);
  }
  int port() const { return port_; }
  int connections() const { return connections_.load(); }

 private:
  const int fd_;
  int port_ = 0;
  std::atomic<int> connections_{0};
  std::thread thread_;
};

// Without our settings gRPC retries after 1 s and then at 2.6 s, plus or minus a fifth: the third
// connection would come after 2 s.
TEST_CASE("a server that is not up yet is retried soon") {
  ClosingPort server;
  ClientOptions options;
  options.server = absl::StrCat("127.0.0.1:", server.port());
  const auto channel = OpenChannel(options);
  REQUIRE(channel.ok());
  const absl::Time end = absl::Now() + absl::Milliseconds(1900);
  while (server.connections() < 3 && absl::Now() < end) {
    (*channel)->WaitForConnected(absl::ToChronoTime(absl::Now() + absl::Milliseconds(50)));
  }
  CHECK(server.connections() >= 3);
}

// Without a waiting caller gRPC checks a connection every 5 s.
TEST_CASE("a server that starts half a second late is found soon after") {
  const int port = FakeServer().port();
  ClientOptions options;
  options.server = absl::StrCat("127.0.0.1:", port);
  const auto client = Client::Connect(options);
  REQUIRE(client.ok());
  std::unique_ptr<FakeServer> server;
  std::thread late([&] {
    absl::SleepFor(absl::Milliseconds(500));
    server = std::make_unique<FakeServer>(port);
    server->script.Answer("GetJob", v1::Job());
  });
  const absl::Time begin = absl::Now();
  CHECK((*client)->Call(&v1::JobService::StubInterface::GetJob, v1::GetJobRequest()).ok());
  CHECK(absl::Now() - begin < absl::Seconds(3));
  late.join();
}

TEST_CASE("missing TLS files are reported at once") {
  ClientOptions options;
  options.tls = {"/nonexistent/cert", "/nonexistent/key", "/nonexistent/ca"};
  CHECK(absl::IsInvalidArgument(Client::Connect(options).status()));
  options.tls.ca = "";
  CHECK(absl::IsInvalidArgument(Client::Connect(options).status()));
}

}  // namespace
}  // namespace berth
