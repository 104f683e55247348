// Health pages and metrics of a whole server; start and stop.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/config/config.h"
#include "server/loop/history.h"
#include "server/loop/loop.h"
#include "storage/turn_recorder.h"
#include "support/clock.h"
#include "support/http/http_server.h"
#include "tests/unit/server/service_world.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {
namespace {

struct Got {
  int code = 0;
  std::string body;
};

int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return fd;
}

void Send(int fd, const std::string& text) {
  REQUIRE(send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
}

Got Ask(int port, const std::string& request) {
  const int fd = Connect(port);
  const timeval patience = {.tv_sec = 30, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  Send(fd, request);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  Got got;
  REQUIRE(text.size() > 12);
  got.code = std::stoi(text.substr(9, 3));
  got.body = text.substr(text.find("\r\n\r\n") + 4);
  return got;
}

Got Get(int port, const std::string& path, const std::string& method = "GET") {
  return Ask(port, absl::StrCat(method, " ", path, " HTTP/1.0\r\n\r\n"));
}

double Sample(const std::string& metrics, const std::string& name) {
  for (size_t at = metrics.find("\n" + name); at != std::string::npos;
       at = metrics.find("\n" + name, at + 1)) {
    const size_t value = at + 1 + name.size();
    if (metrics[value] == ' ') return std::stod(metrics.substr(value + 1));
  }
  FAIL("no sample " << name);
  return 0;
}

// A connection that speaks just enough HTTP/2 for gRPC to accept it as a client, and then sends
// nothing, like a stopped client, or a library that serves its connections only during calls.
class SilentClient {
 public:
  explicit SilentClient(int port) : fd_(Connect(port)) {
    const std::string preface(
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        "\0\0\0\4\0\0\0\0\0",
        33);
    REQUIRE(write(fd_, preface.data(), preface.size()) == static_cast<ssize_t>(preface.size()));
    char settings[9];
    REQUIRE(read(fd_, settings, sizeof settings) == sizeof settings);
  }
  ~SilentClient() { close(fd_); }

 private:
  const int fd_;
};

absl::Duration TimeOf(absl::FunctionRef<void()> call) {
  const absl::Duration begin = SystemClock().Steady();
  call();
  return SystemClock().Steady() - begin;
}

}  // namespace

TEST_CASE("http: paths, methods, and handlers that are added and removed") {
  absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Start("127.0.0.1:0");
  REQUIRE(server.ok());
  const int port = (*server)->port();
  CHECK(Get(port, "/hello").code == 404);
  (*server)->SetHandler("/hello", [] { return HttpAnswer{200, "hi\n"}; });
  CHECK(Get(port, "/hello").body == "hi\n");
  CHECK(Get(port, "/hello?x=1").code == 200);
  CHECK(Get(port, "/hello", "HEAD").body.empty());
  CHECK(Get(port, "/hello", "POST").code == 405);
  CHECK(Get(port, "/hello", "gibberish").code == 405);
  CHECK(Get(port, "hello").code == 404);
  CHECK(Ask(port, "GET /hello HTTP/1.1\r\nHost: x\r\ncontent-length: 3\r\n\r\nabc").code == 400);
  CHECK(Ask(port, "GET /hello HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n").code ==
        400);
  CHECK(Ask(port, "GET /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").code == 200);
  const std::string start = "GET /hello HTTP/1.1\r\nHost: x\r\nX: ";
  CHECK(Ask(port, start + std::string(2 * kHttpHeaderBytes, 'x')).code == 431);
  (*server)->SetHandler("/hello", nullptr);
  CHECK(Get(port, "/hello").code == 404);
  CHECK(absl::IsUnavailable(HttpServer::Start(absl::StrCat("127.0.0.1:", port)).status()));
}

TEST_CASE("http: clients that send nothing, too little or too slowly delay no other client") {
  absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Start("127.0.0.1:0");
  REQUIRE(server.ok());
  const int port = (*server)->port();
  absl::Notification scraped;
  (*server)->SetHandler("/readyz", [] { return HttpAnswer{200, "ok\n"}; });
  (*server)->SetHandler(
      "/metrics",
      [&] {
        scraped.WaitForNotification();
        return HttpAnswer{200, "m 1\n"};
      },
      HttpServer::Cost::kHigh);
  std::vector<int> idle;
  for (int i = 0; i < 64; ++i) {
    const int fd = idle.emplace_back(Connect(port));
    // A third of each: no data, half a header, a body that never arrives.
    const std::string text =
        i % 3 == 0   ? ""
        : i % 3 == 1 ? "GET /readyz HTTP/1.1\r\nHost: x\r\nX-Slow: "
                     : "POST /readyz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx";
    REQUIRE(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  CHECK(TimeOf([&] { CHECK(Get(port, "/readyz").code == 200); }) < absl::Seconds(1));
  std::vector<std::thread> scrapes;  // they may take any time
  std::atomic<int> busy{0}, good{0};
  for (int i = 0; i < 8; ++i) {
    scrapes.emplace_back([&] { ++(Get(port, "/metrics").code == 503 ? busy : good); });
  }
  while (busy < 8 - kHttpCostly) absl::SleepFor(absl::Milliseconds(5));
  CHECK(TimeOf([&] { CHECK(Get(port, "/readyz").code == 200); }) < absl::Seconds(1));
  scraped.Notify();
  for (std::thread& scrape : scrapes) scrape.join();
  CHECK(good == kHttpCostly);
  CHECK(TimeOf([&] { CHECK(Get(port, "/metrics").code == 200); }) < absl::Seconds(1));
  // Clients that send a byte now and then are disconnected all the same.
  const int slow = Connect(port);
  const absl::Duration begin = SystemClock().Steady();
  const char byte = 'G';
  while (send(slow, &byte, 1, MSG_NOSIGNAL) == 1) absl::SleepFor(absl::Milliseconds(100));
  CHECK(SystemClock().Steady() - begin < 5 * kHttpRequestTime);
  close(slow);
  for (const int fd : idle) close(fd);
}

// There are more of them than connections, and none ever ends.
TEST_CASE("http: clients that trickle a body or never read an answer delay no other client") {
  constexpr int kClients = 300;
  absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Start("127.0.0.1:0");
  REQUIRE(server.ok());
  const int port = (*server)->port();
  (*server)->SetHandler("/readyz", [] { return HttpAnswer{200, "ok\n"}; });
  (*server)->SetHandler("/metrics", [] {
    return HttpAnswer{200, std::string(size_t{8} << 20, 'm')};
  });
  const std::string request = GENERATE(
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2147483647\r\n\r\n",
      "GET /readyz HTTP/1.1\r\nHost: x\r\nContent-Length: 2147483647\r\n\r\n",
      "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "GET /readyz HTTP/1.1\r\nHost: x\r\nX-Slow: ");
  std::vector<int> clients;
  for (int i = 0; i < kClients; ++i) Send(clients.emplace_back(Connect(port)), request);
  std::atomic<bool> done{false};
  std::thread trickle([&] {
    while (!done) {
      for (const int fd : clients) send(fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
      absl::SleepFor(absl::Milliseconds(100));
    }
  });
  for (int i = 0; i < 20; ++i) {
    CHECK(Get(port, "/readyz").code == 200);
    absl::SleepFor(absl::Milliseconds(20));
  }
  CHECK(Get(port, "/metrics").body.size() == size_t{8} << 20);
  done = true;
  trickle.join();
  for (const int fd : clients) close(fd);
}

TEST_CASE("app: health, readiness and metrics of a running server") {
  ServiceWorld world([](config::v1::Server& config) { config.set_http_listen("127.0.0.1:0"); });
  const int port = world.app().http_port();
  CHECK(Get(port, "/healthz").code == 200);
  CHECK(Get(port, "/readyz").code == 200);
  world.CreateQueue("q");
  world.MustSubmit({"a", "b", "c"});
  // Counters lag the acks by a moment.
  Got metrics = Get(port, "/metrics");
  for (int tries = 0; tries < 500 && Sample(metrics.body, "berth_jobs_submitted_total") < 3;
       ++tries) {
    absl::SleepFor(absl::Milliseconds(10));
    metrics = Get(port, "/metrics");
  }
  CHECK(metrics.code == 200);
  CHECK(Sample(metrics.body, "berth_jobs{state=\"PENDING\"}") == 3);
  CHECK(Sample(metrics.body, "berth_jobs_submitted_total") == 3);
  CHECK(Sample(metrics.body, "berth_queue_pending{queue=\"q\",resource=\"cpu\"}") == 3);
  CHECK(Sample(metrics.body, "berth_accepting_work") == 1);
  CHECK(Sample(metrics.body, "berth_durable_revision") >= 2);
  for (const char* histogram :
       {"berth_turn_seconds", "berth_plan_seconds", "berth_commit_seconds"}) {
    CHECK(Sample(metrics.body, absl::StrCat(histogram, "_count")) > 0);
  }
  CHECK(Sample(metrics.body, "berth_dispatch_seconds_count") == 0);
  CHECK(Sample(metrics.body, "berth_tasks{state=\"PENDING\"}") == 3);
  v1::CancelJobRequest cancel;
  cancel.set_name("b");
  v1::Job cancelled;
  REQUIRE(Call(*world.jobs, &v1::JobService::Stub::CancelJob, cancel, &cancelled).ok());
  metrics = Get(port, "/metrics");
  CHECK(Sample(metrics.body, "berth_jobs{state=\"CANCELLED\"}") == 1);
  CHECK(Sample(metrics.body, "berth_tasks{state=\"PENDING\"}") == 2);
  // Each family appears once.
  CHECK(metrics.body.find("# TYPE berth_queue_jobs gauge") ==
        metrics.body.rfind("# TYPE berth_queue_jobs gauge"));
}

TEST_CASE("app: a full disk is reported, new work is refused, and service resumes by itself") {
  ServiceWorld world([](config::v1::Server& config) { config.set_http_listen("127.0.0.1:0"); });
  const int port = world.app().http_port();
  world.CreateQueue("q");
  std::atomic<bool> full{true};
  world.store().SetFault([&] {
    return full.load() ? absl::ResourceExhaustedError("disk full: no space left")
                       : absl::OkStatus();
  });
  // The first call was accepted before the full disk was noticed: its answer waits.
  absl::Status waiting = absl::UnknownError("not answered");
  std::thread first([&] {
    v1::SubmitJobsRequest request;
    v1::Job* job = request.add_jobs();
    *job = v1::Job();
    job->set_name("a");
    job->mutable_spec()->set_queue("q");
    v1::TaskGroup* group = job->mutable_spec()->add_groups();
    group->set_name("w");
    group->set_replicas(1);
    group->add_command("true");
    v1::SubmitJobsResponse response;
    waiting = world.Submit(request, &response);
  });
  while (world.app().loop().PausedReason().empty()) absl::SleepFor(absl::Milliseconds(10));
  const Got unready = Get(port, "/readyz");
  CHECK(unready.code == 503);
  CHECK(unready.body.find("disk full") != std::string::npos);
  CHECK(Get(port, "/healthz").code == 200);
  CHECK(Sample(Get(port, "/metrics").body, "berth_accepting_work") == 0);
  v1::CreateQueueRequest create;
  create.mutable_queue()->set_name("late");
  v1::Queue queue;
  const absl::Status refused =
      Call(*world.queues, &v1::QueueService::Stub::CreateQueue, create, &queue);
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(RetryDelayOf(refused) > absl::ZeroDuration());
  v1::ClusterInfo info;
  REQUIRE(Call(*world.cluster, &v1::ClusterService::Stub::GetClusterInfo,
               v1::GetClusterInfoRequest(), &info)
              .ok());
  CHECK_FALSE(info.accepting_work());
  CHECK(info.not_accepting_reason().find("disk full") != std::string::npos);
  full = false;
  first.join();
  CHECK(waiting.ok());
  CHECK(Get(port, "/readyz").code == 200);
}

TEST_CASE("app: a stop on a full disk does not hang, and waiting calls get an answer") {
  auto world = std::make_unique<ServiceWorld>();
  world->CreateQueue("q");
  world->store().SetFault([] { return absl::ResourceExhaustedError("disk full"); });
  absl::Status waiting;
  std::thread call([&] {
    v1::CreateQueueRequest create;
    create.mutable_queue()->set_name("late");
    v1::Queue queue;
    waiting = Call(*world->queues, &v1::QueueService::Stub::CreateQueue, create, &queue);
  });
  while (world->app().loop().PausedReason().empty()) absl::SleepFor(absl::Milliseconds(10));
  world->app().Stop();
  call.join();
  CHECK_FALSE(waiting.ok());
}

// The bounds are far from the usual times (10 and 260 ms) and from the earlier ones (2 and 5 s).
TEST_CASE("app: a stop waits neither for the HTTP accept thread nor for idle clients") {
  absl::StatusOr<std::unique_ptr<HttpServer>> http = HttpServer::Start("127.0.0.1:0");
  REQUIRE(http.ok());
  CHECK(TimeOf([&] { http->reset(); }) < absl::Seconds(1));
  ServiceWorld world;
  SilentClient silent(world.app().port());
  CHECK(TimeOf([&] { world.app().Stop(); }) < absl::Seconds(3));
}

TEST_CASE("app: data acked before a stop is present after it") {
  ServiceWorld world;
  world.CreateQueue("q");
  constexpr int kClients = 4;
  std::vector<std::string> acked[kClients];
  absl::Status last[kClients];
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      for (int i = 0;; ++i) {
        const std::string name = absl::StrCat("j-", client, "-", i);
        v1::SubmitJobsRequest request;
        *request.add_jobs() = SmallJob(name);
        v1::SubmitJobsResponse response;
        last[client] = world.Submit(request, &response);
        if (!last[client].ok()) return;
        acked[client].push_back(name);
      }
    });
  }
  absl::SleepFor(absl::Milliseconds(200));
  world.app().Stop();
  for (std::thread& client : clients) client.join();
  world.Restart();
  for (int client = 0; client < kClients; ++client) {
    INFO(last[client]);
    CHECK((absl::IsUnavailable(last[client]) || absl::IsCancelled(last[client])));
    for (const std::string& name : acked[client]) world.MustGetJob(name);
  }
}

TEST_CASE("app: a server that cannot start reports the reason") {
  config::v1::Server config;
  config.set_http_listen(kNoHttp);
  ServiceWorld world;
  config.set_listen(absl::StrCat("127.0.0.1:", world.app().port()));
  REQUIRE(CompleteConfig(config).ok());
  const auto memory = []() -> absl::StatusOr<std::unique_ptr<Store>> {
    return std::make_unique<MemoryStore>();
  };
  const absl::Status taken = App::Start(config, memory).status();
  CHECK(absl::IsUnavailable(taken));
  CHECK(taken.message().find("is another berthd running?") != absl::string_view::npos);
  const auto damaged = []() -> absl::StatusOr<std::unique_ptr<Store>> {
    return absl::DataLossError("000004.sst: checksum mismatch");
  };
  CHECK(App::Start(config, damaged).status().message() == "000004.sst: checksum mismatch");
}

TEST_CASE("history: only old entries age out, and they are found without a full read") {
  MemoryStore store;
  ClusterState state;
  TurnRecorder recorder(state);
  const absl::Time begin = absl::FromUnixSeconds(1'000'000);
  for (int i = 0; i < 100; ++i) {
    recorder.Begin(store.LastSequence() + 1, begin + absl::Minutes(i));
    QueueSpec spec;
    spec.name = absl::StrCat("q", i);
    REQUIRE(recorder.Apply({begin, QueueCreated{state.next_queue_id(), std::move(spec)}}).ok());
    std::optional<Batch> batch = recorder.Finish();
    REQUIRE(store.Append({&*batch}).ok());
  }
  CHECK(*LastTurnBefore(store, begin, 100) == 0);
  CHECK(*LastTurnBefore(store, begin + absl::Minutes(50), 100) == 50);
  REQUIRE(TrimHistory(store, begin + absl::Minutes(100), absl::Minutes(30)).ok());
  CHECK(absl::IsOutOfRange(store.ReadLog(69, 1).status()));
  CHECK(store.ReadLog(70, 1).ok());
  REQUIRE(TrimHistory(store, begin + absl::Hours(100), absl::Minutes(1)).ok());
  CHECK(store.ReadLog(99, 1)->size() == 1);  // the last one stays
}

}  // namespace berth::testing
