// A server without threads, disk or network: loop, controllers, a clock that tests advance, a
// committer that can hold batches back, and scripted agents. Tests drive it turn by turn.
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
#include "server/loop/loop.h"
#include "storage/memory/memory_store.h"
#include "support/clock.h"

namespace berth::testing {

class FakeClock final : public Clock {
 public:
  absl::Time Now() override { return start_ + steady_; }
  absl::Duration Steady() override { return steady_ += tick; }
  void Advance(absl::Duration by) { steady_ += by; }

  absl::Duration tick;  // passes with each read of the steady time

 private:
  const absl::Time start_ = absl::FromUnixSeconds(1'800'000'000);
  absl::Duration steady_ = absl::Hours(1);
};

// Writes to a store, at once or on Release().
class HeldCommitter final : public Committer {
 public:
  explicit HeldCommitter(Store* store) : store_(store) {}

  void Commit(Batch batch, absl::AnyInvocable<void() &&> on_durable) override;
  uint64_t DurableSequence() const override { return store_->LastSequence(); }
  size_t Backlog() const override { return held_.size(); }
  std::string PausedReason() const override { return paused; }

  // Makes the oldest batches durable, by default all.
  void Release(size_t most = SIZE_MAX);
  // The machine crashes: held batches never become durable.
  void Drop() { held_.clear(); }
  size_t held() const { return held_.size(); }

  bool hold = false;   // false: durable at once
  std::string paused;  // why
  size_t batches = 0;  // committed so far

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
  double share = 0;  // of one GPU, instead of gpus
  NodeLossPolicy on_node_loss = NodeLossPolicy::kFence;
  int32_t max_retries = 0;
  absl::Duration kill_grace = absl::Seconds(10);
  std::string kill_signal = "SIGTERM";
  std::string checkpoint_signal = {};
  absl::Duration checkpoint_grace = absl::ZeroDuration();
  bool saves_before_drain = false;
  bool suspends_idle = false;
  bool lends_devices = false;
  absl::Duration ttl_after_finished = absl::InfiniteDuration();
  absl::Duration walltime = absl::InfiniteDuration();
  absl::Duration watchdog = absl::InfiniteDuration();
  std::string image = {};
};

class World {
 public:
  explicit World(LoopOptions options = {}, LeaseOptions leases = {});
  ~World();

  // Runs turns until there is nothing to do or the loop waits for the disk.
  void Run();
  // Advances the time in steps of a lease tick, each followed by Run().
  void Advance(absl::Duration by);
  // The server stops and starts again from what was durable.
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
  LeaseOptions lease_options;  // of the next start
  bool restored = false;       // the next start is the first one of a restored store
  std::string policy_record;   // of `policies`
  StoreIdentity identity;      // sent to agents
  uint64_t term = 0;           // likewise
  uint32_t store_format = kStoreFormat;

  // Created again by each restart.
  std::unique_ptr<Loop> loop;
  std::unique_ptr<Dispatcher> dispatcher;
  std::unique_ptr<LeaseKeeper> leases;
  std::unique_ptr<AgentGateway> gateway;
  std::unique_ptr<LogRelay> relay;

 private:
  void Start();
  const ClusterState* peek_ = nullptr;  // one thread: no lock needed
};

// An agent that follows the rules of proto/berth/v1/agent.proto, step by step.
class Agent {
 public:
  Agent(World* world, std::string name, std::string agent_id = "");

  // Connects and sends Hello with the content of the journal; Run()s the world. After a Welcome it
  // sends its conditions, which are empty.
  void Connect();
  void Hello();       // only Hello
  void Disconnect();  // the stream breaks
  void Heartbeat();
  // Executes new messages (prepare, start, kill) until there are none. Run()s the world.
  void Work();
  // A task exits by itself.
  void Exit(JobId job, uint32_t task, int32_t code);
  void Report(v1::TaskReport report);  // with the current epoch, otherwise unchanged
  void Send(v1::AgentMessage message);

  bool Holds(JobId job, uint32_t task, uint32_t attempt) const;
  bool Runs(JobId job, uint32_t task = 0) const;
  v1::TaskReport ReportFor(JobId job, uint32_t task, uint32_t attempt, v1::TaskReport::State state);

  using Key = std::tuple<uint64_t, uint32_t, uint32_t>;  // job, task, attempt
  World* const world;
  std::string name, agent_id, boot_id = "boot-1";
  bool knows_incarnations = true;
  uint64_t incarnation = 0;  // of its reports
  v1::Hello last;            // cluster_id, incarnation and epoch of its Hello
  v1::NodeInventory inventory;
  std::shared_ptr<FakeLink> link;
  SessionId session = 0;
  uint64_t epoch = 0;
  std::map<Key, v1::TaskReport> journal;  // the attempts that it holds, with their latest reports
  std::map<Key, v1::Prepare> prepared;
  std::map<Key, int> executions;  // how often each was started: at most once
  std::vector<uint64_t> acked;
  bool mute = false;  // reads, but answers nothing

 private:
  void Handle(const v1::ServerMessage& message);
  void Start(const Key& key);
  size_t seen_ = 0;
  uint64_t next_report_ = 1;
};

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_SERVER_LOOP_WORLD_H_
