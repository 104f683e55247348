// A server without threads, disk or network: loop, controllers, a clock that stands still, a
// committer that can hold back, agents that do as told. Tests drive it turn by turn.
#ifndef BERTH_TESTS_UNIT_SERVER_LOOP_WORLD_H_
#define BERTH_TESTS_UNIT_SERVER_LOOP_WORLD_H_

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "berth/v1/agent.pb.h"
#include "core/engine/policies.h"
#include "core/model/cluster_state.h"
#include "server/controllers/agent_gateway.h"
#include "server/controllers/dispatcher.h"
#include "server/controllers/executor.h"
#include "server/controllers/lease_keeper.h"
#include "server/controllers/log_relay.h"
#include "server/loop.h"
#include "storage/memory/memory_store.h"
#include "support/clock.h"

namespace berth::testing {

class FakeClock final : public Clock {
 public:
  absl::Time Now() override { return start_ + steady_; }
  absl::Duration Steady() override { return steady_ += tick; }
  void Advance(absl::Duration by) { steady_ += by; }

  absl::Duration tick;  // goes by at each look at steady time

 private:
  const absl::Time start_ = absl::FromUnixSeconds(1'800'000'000);
  absl::Duration steady_ = absl::Hours(1);
};

// Writes to a store when it is told to.
class HeldCommitter final : public Committer {
 public:
  explicit HeldCommitter(Store* store) : store_(store) {}

  void Commit(Batch batch, absl::AnyInvocable<void() &&> on_durable) override;
  uint64_t DurableSequence() const override { return store_->LastSequence(); }
  size_t Backlog() const override { return held_.size(); }
  std::string PausedReason() const override { return paused; }

  // Makes the oldest batches durable, all by default.
  void Release(size_t most = SIZE_MAX);
  // The machine dies: nothing that was held ever becomes durable.
  void Drop() { held_.clear(); }
  size_t held() const { return held_.size(); }

  bool hold = false;   // false: durable at once
  std::string paused;  // why
  size_t batches = 0;  // handed in so far

 private:
  struct Held {
    Batch batch;
    absl::AnyInvocable<void() &&> on_durable;
  };
  Store* const store_;
  std::deque<Held> held_;
};

class FakeLink final : public AgentLink {
 public:
  void Send(v1::ServerMessage message) override {
    if (!closed) messages.push_back(std::move(message));
  }
  void Close(absl::Status why) override {
    closed = true;
    status = std::move(why);
  }
  // Messages of one kind, in order.
  std::vector<v1::ServerMessage> Of(v1::ServerMessage::MessageCase kind) const;

  std::vector<v1::ServerMessage> messages;
  bool closed = false;
  absl::Status status;
};

struct JobOptions {
  int32_t tasks = 1;
  int32_t min_available = 0;  // 0 = all
  int64_t cpu_millis = 1000;
  int32_t gpus = 0;
  double share = 0;  // of one GPU, in place of gpus
  NodeLossPolicy on_node_loss = NodeLossPolicy::kFence;
  int32_t max_retries = 0;
  absl::Duration kill_grace = absl::Seconds(10);
  std::string kill_signal = "SIGTERM";
  std::string checkpoint_signal = {};
  absl::Duration checkpoint_grace = absl::ZeroDuration();
  absl::Duration ttl_after_finished = absl::InfiniteDuration();
};

class World {
 public:
  explicit World(LoopOptions options = {}, LeaseOptions leases = {});
  ~World();

  // Turns until there is nothing to do or the disk is waited for.
  void Run();
  // Time passes in steps of a lease tick, each followed by Run().
  void Advance(absl::Duration by);
  // The server ends and starts again from what was durable.
  void Restart();

  // A job of one group "worker" in queue "main"; durable unless the committer holds.
  JobId Submit(const std::string& name, JobOptions options = {});
  void Cancel(JobId job);

  const ClusterState& state() const { return *peek_; }
  const Job& job(JobId id) const { return peek_->jobs().At(id); }
  const Task& task(JobId id, uint32_t index = 0) const { return job(id).tasks.at(index); }
  const Node& node(const std::string& name) const { return *peek_->FindNode(name); }

  FakeClock clock;
  MemoryStore store;
  HeldCommitter committer{&store};
  Policies policies = Policies::Default();
  Policies no_placing = [] {  // while a restored store waits for its nodes
    PolicyConfig config;
    config.actions = {"expire_gangs"};
    return Policies::Create(config).value();
  }();
  InlineExecutor executor;
  const LoopOptions loop_options;
  LeaseOptions lease_options;  // of the next start, as the next
  bool restored = false;       // the next start is the first one of a restored store
  std::string policy_record;   // of `policies`
  StoreIdentity identity;      // that agents are told

  // Anew after a restart.
  std::unique_ptr<Loop> loop;
  std::unique_ptr<Dispatcher> dispatcher;
  std::unique_ptr<LeaseKeeper> leases;
  std::unique_ptr<AgentGateway> gateway;
  std::unique_ptr<LogRelay> relay;

 private:
  void Start();
  const ClusterState* peek_ = nullptr;  // one thread: no lock needed
};

// An agent that keeps the rules of proto/berth/v1/agent.proto, when asked to.
class Agent {
 public:
  Agent(World* world, std::string name, std::string agent_id = "");

  // Connects and says Hello with what the journal holds; Run()s the world. After a Welcome
  // it tells its conditions, of which there are none.
  void Connect();
  void Hello();       // and no more
  void Disconnect();  // the stream breaks
  void Heartbeat();
  // Does what new messages ask: prepares, starts, kills, until nothing is new. Run()s the world.
  void Work();
  // Ends a task of its own accord.
  void Exit(JobId job, uint32_t task, int32_t code);
  void Report(v1::TaskReport report);  // with the epoch, as it is
  void Send(v1::AgentMessage message);

  bool Holds(JobId job, uint32_t task, uint32_t attempt) const;
  bool Runs(JobId job, uint32_t task = 0) const;
  v1::TaskReport ReportFor(JobId job, uint32_t task, uint32_t attempt, v1::TaskReport::State state);

  using Key = std::tuple<uint64_t, uint32_t, uint32_t>;  // job, task, attempt
  World* const world;
  std::string name, agent_id, boot_id = "boot-1";
  bool knows_incarnations = true;
  uint64_t incarnation = 0;  // of what it reports
  v1::Hello last;            // cluster_id, incarnation and epoch that its Hello says
  v1::NodeInventory inventory;
  std::shared_ptr<FakeLink> link;
  SessionId session = 0;
  uint64_t epoch = 0;
  std::map<Key, v1::TaskReport> journal;  // what it holds, with its latest report
  std::map<Key, v1::Prepare> prepared;
  std::map<Key, int> executions;  // how often each was started: never more than once
  std::vector<uint64_t> acked;
  bool mute = false;  // reads, and answers nothing

 private:
  void Handle(const v1::ServerMessage& message);
  void Start(const Key& key);
  size_t seen_ = 0;
  uint64_t next_report_ = 1;
};

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_SERVER_LOOP_WORLD_H_
