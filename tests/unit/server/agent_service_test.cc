// The agent stream over real gRPC with real threads: register, run a task, supersede, disconnect.
#include "server/services/agent_service.h"

#include <grpcpp/grpcpp.h>

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <thread>

#include "absl/synchronization/notification.h"
#include "core/base/check.h"
#include "core/engine/policies.h"
#include "server/controllers/dispatcher.h"
#include "server/controllers/lease_keeper.h"
#include "server/convert/cold.h"
#include "server/loop/committer.h"
#include "server/loop/loop_thread.h"
#include "storage/memory/memory_store.h"

namespace berth {
namespace {

// A whole server in one process, wired as in main.cc, on a free port.
struct TestServer {
  TestServer() {
    loop.AddObserver(&dispatcher);
    leases.Start();
    thread.AddPeriodic(leases.TickPeriod(), [this] { leases.Tick(); });
    thread.Start();
    grpc::ServerBuilder builder;
    AddAgentKeepalive(leases.lease(), builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
    REQUIRE(server != nullptr);
  }
  ~TestServer() {
    gateway.DisconnectAll(absl::UnavailableError("the server ends"));
    server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(5));
    thread.Stop();
    committer->Stop();
  }
  // Runs on the loop and waits until it is durable.
  void Do(std::function<void(Turn&)> change) {
    absl::Notification done;
    REQUIRE(loop.Post([&](Turn& turn) {
                  change(turn);
                  turn.OnDurable([&] { done.Notify(); });
                })
                .ok());
    done.WaitForNotification();
  }
  TaskState StateOf(JobId job) {
    return loop.Read([&](const ClusterState& state, uint64_t) {
      return state.jobs().At(job).tasks.at(0).state;
    });
  }

  MemoryStore store;
  Policies policies = Policies::Default();
  std::unique_ptr<GroupCommitter> committer = std::make_unique<GroupCommitter>(&store);
  Loop loop{{.clock = &SystemClock(), .committer = committer.get(), .policies = &policies},
            ClusterState(),
            0};
  ThreadExecutor executor;
  Dispatcher dispatcher{&store, &executor};
  LeaseKeeper leases{&loop, &SystemClock()};
  AgentGateway gateway{&loop, &leases, &dispatcher};
  CallerBook callers{config::v1::Access()};
  OpenStreams streams{&loop, &executor};
  AgentService service{&gateway, {.callers = &callers, .loop = &loop, .streams = &streams}};
  LoopThread thread{&loop, &SystemClock(), absl::Milliseconds(1)};
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

struct Client {
  explicit Client(int port)
      : stub(v1::AgentService::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                                           grpc::InsecureChannelCredentials()))),
        stream(stub->Connect(&context)) {
    context.set_wait_for_ready(true);
  }
  void Hello(const std::string& agent_id) {
    v1::AgentMessage message;
    v1::Hello& hello = *message.mutable_hello();
    hello.set_node("n1");
    hello.set_agent_id(agent_id);
    hello.set_boot_id("boot");
    hello.mutable_inventory()->set_cpu_millis(4000);
    stream->Write(message);
  }
  v1::ServerMessage Read() {
    v1::ServerMessage message;
    REQUIRE(stream->Read(&message));
    return message;
  }
  void Report(const v1::TaskKey& key, v1::TaskReport::State state, uint64_t id) {
    v1::AgentMessage message;
    message.set_epoch(epoch);
    *message.mutable_report()->mutable_key() = key;
    message.mutable_report()->set_state(state);
    message.mutable_report()->set_report_id(id);
    stream->Write(message);
  }
  grpc::ClientContext context;
  std::unique_ptr<v1::AgentService::Stub> stub;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::ServerMessage>> stream;
  uint64_t epoch = 0;
};

// Catch's assertions are not thread-safe.
void Must(const absl::Status& status) { BERTH_CHECK(status.ok()); }

JobId Submit(TestServer& server) {
  JobId id;
  server.Do([&](Turn& turn) {
    QueueSpec queue;
    queue.name = "main";
    const QueueId queue_id = turn.state().next_queue_id();
    Must(turn.Emit(QueueCreated{queue_id, queue}));
    JobSpec spec;
    spec.name = "one";
    spec.queue = queue_id;
    spec.min_available = 1;
    GroupSpec group;
    group.name = "worker";
    group.shape.cpu_millis = 1000;
    spec.groups.push_back(group);
    v1::JobSpec cold;
    cold.add_groups()->add_command("true");
    id = turn.state().next_job_id();
    Must(turn.Emit(JobSubmitted{id, spec}));
    turn.PutCold(id, std::make_shared<const std::string>(EncodeCold(cold)));
  });
  return id;
}

TEST_CASE("agent service: the life of a task over a real stream") {
  TestServer server;
  Client client(server.port);
  client.Hello("a");
  client.epoch = client.Read().welcome().epoch();
  CHECK(client.epoch == 1);
  v1::AgentMessage beat;
  beat.set_epoch(1);
  beat.mutable_heartbeat()->set_sequence(42);
  client.stream->Write(beat);
  CHECK(client.Read().heartbeat_ack().sequence() == 42);

  const JobId job = Submit(server);
  const v1::Prepare prepare = client.Read().prepare();
  CHECK(prepare.launch().command(0) == "true");
  CHECK(prepare.start_at_once());
  client.Report(prepare.key(), v1::TaskReport::RUNNING, 1);
  CHECK(client.Read().report_ack().report_id() == 1);
  CHECK(server.StateOf(job) == TaskState::kRunning);
  client.Report(prepare.key(), v1::TaskReport::EXITED, 2);
  CHECK(client.Read().report_ack().report_id() == 2);
  CHECK(server.StateOf(job) == TaskState::kSucceeded);
  client.stream->WritesDone();
  v1::ServerMessage more;
  CHECK_FALSE(client.stream->Read(&more));
  CHECK(client.stream->Finish().ok());
}

TEST_CASE("agent service: a second stream of an agent ends the first") {
  TestServer server;
  Client first(server.port), second(server.port), stranger(server.port);
  first.Hello("a");
  first.Read();
  second.Hello("a");
  CHECK(second.Read().welcome().epoch() == 2);
  CHECK(first.Read().refused().code() == v1::Refused::SUPERSEDED);
  v1::ServerMessage more;
  CHECK_FALSE(first.stream->Read(&more));
  stranger.Hello("b");
  CHECK(stranger.Read().refused().code() == v1::Refused::NAME_IN_USE);
  CHECK_FALSE(stranger.stream->Read(&more));
}

TEST_CASE("agent service: a stream that breaks ends its session") {
  TestServer server;
  auto client = std::make_unique<Client>(server.port);
  client->Hello("a");
  client->Read();
  client->context.TryCancel();
  for (int i = 0; i < 2000 && server.gateway.sessions() > 0; ++i) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  CHECK(server.gateway.sessions() == 0);
}

TEST_CASE("agent service: an agent that does not read is disconnected") {
  TestServer server;
  Client client(server.port);
  client.Hello("a");
  client.Read();
  v1::ServerMessage big;
  big.mutable_kill()->set_reason(std::string(size_t{1} << 20, 'x'));
  const NodeId node{1};
  bool cut = false;
  for (int i = 0; i < 500 && !cut; ++i) {
    cut = !server.gateway.SendTo(node, 1, big);
    if (i > 100) absl::SleepFor(absl::Milliseconds(5));
  }
  CHECK(cut);
  v1::ServerMessage message;
  while (client.stream->Read(&message)) {
  }
  CHECK_FALSE(client.stream->Finish().ok());
}

TEST_CASE("agent service: many agents at once") {
  TestServer server;
  constexpr int kAgents = 8, kBeats = 50;
  std::vector<std::thread> threads;
  std::atomic<int> acked{0};
  for (int i = 0; i < kAgents; ++i) {
    threads.emplace_back([&, i] {
      Client client(server.port);
      v1::AgentMessage message;
      message.mutable_hello()->set_node("n" + std::to_string(i));
      message.mutable_hello()->set_agent_id("a" + std::to_string(i));
      message.mutable_hello()->set_boot_id("boot");
      client.stream->Write(message);
      v1::ServerMessage answer;
      if (!client.stream->Read(&answer)) return;
      message.set_epoch(answer.welcome().epoch());
      for (int beat = 0; beat < kBeats; ++beat) {
        message.mutable_heartbeat()->set_sequence(static_cast<uint64_t>(beat));
        client.stream->Write(message);
        if (client.stream->Read(&answer) && answer.has_heartbeat_ack()) ++acked;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(acked == kAgents * kBeats);
}

}  // namespace
}  // namespace berth
