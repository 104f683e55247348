#include "clients/agent/simulation.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "clients/agent/agent_config.h"
#include "clients/agent/grpc_link.h"
#include "clients/agent/journal.h"
#include "clients/agent/logic.h"
#include "clients/agent/sim_node.h"
#include "support/clock.h"
#include "support/name_pattern.h"
#include "support/version.h"

namespace berth {
namespace {

constexpr size_t kShards = 2;
constexpr size_t kNodesPerConnection = 100;
constexpr absl::Duration kConnectSpacing =
    absl::Microseconds(200);                             // between nodes of a shard, at the start
constexpr absl::Duration kKeepEnded = absl::Seconds(2);  // simulated tasks have no logs
constexpr absl::Duration kLongest = absl::Hours(1);

}  // namespace

class SimShard {
 public:
  SimShard(uint64_t seed, std::string boot_id) : random_(seed), boot_id_(std::move(boot_id)) {}
  ~SimShard();

  // Before Run. `behaviour` must outlive the shard.
  void Add(const std::string& name, v1::NodeInventory inventory, const SimBehaviour& behaviour,
           const std::vector<AgentServer>& servers);
  void Run();
  void AddCounters(Simulation::Counters* counters);
  bool Tell(const TaskId& id, absl::string_view datagram);

 private:
  struct Node;
  // A task's event, or (without one) a call of the node's Tick.
  struct Timer {
    absl::Duration at;
    uint64_t sequence = 0;
    Node* node = nullptr;
    std::optional<TaskEvent> event;
    bool operator<(const Timer& other) const {  // the top of the heap is its maximum
      return std::tie(other.at, other.sequence) < std::tie(at, sequence);
    }
  };

  static Instant Now() { return {.steady = SystemClock().Steady(), .wall = SystemClock().Now()}; }
  void Push(absl::Duration at, Node* node, std::optional<TaskEvent> event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Deliver(Node& node, const TaskEvent& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Call after any change of a node: handles immediate events and schedules the next Tick.
  void Settle(Node& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Serve(Timer timer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Loop();

  absl::Mutex mutex_;
  Random random_ ABSL_GUARDED_BY(mutex_);
  const std::string boot_id_;
  SimCounters counters_ ABSL_GUARDED_BY(mutex_);
  std::priority_queue<Timer> timers_ ABSL_GUARDED_BY(mutex_);
  uint64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration wait_until_ ABSL_GUARDED_BY(mutex_);  // of the thread
  absl::CondVar earlier_;                              // signals a timer earlier than wait_until_
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  NullJournal journal_;
  NoLogs logs_;
  std::vector<std::unique_ptr<Node>> nodes_;  // fixed after the start
  std::thread thread_;
};

struct SimShard::Node final : public LinkEvents {
  Node(SimShard& owner, AgentLogic::Options options, const SimBehaviour& behaviour,
       const std::vector<AgentServer>& servers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(owner.mutex_)
      : shard(owner),
        runner(behaviour, owner.random_, owner.counters_,
               [this](absl::Duration delay, TaskEvent event) { After(delay, std::move(event)); }),
        link(servers, *this),
        logic(std::move(options), link, owner.journal_, runner, owner.logs_, owner.random_) {
    logic.SetNoticeSource(&runner);
  }

  void OnMessage(uint64_t connection, v1::ServerMessage message) override {
    absl::MutexLock lock(&shard.mutex_);
    if (connection != link.connection()) return;
    logic.OnServerMessage(Now(), message);
    shard.Settle(*this);
  }
  void OnDisconnected(uint64_t connection, const std::string& reason) override {
    absl::MutexLock lock(&shard.mutex_);
    if (connection != link.connection()) return;
    link.Ended();
    logic.OnDisconnected(Now(), reason);
    shard.Settle(*this);
  }
  // Called by the runner inside the logic, under the mutex.
  void After(absl::Duration delay, TaskEvent event) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (delay <= absl::ZeroDuration()) {
      at_once.push_back(std::move(event));
    } else {
      shard.Push(SystemClock().Steady() + delay, this, std::move(event));
    }
  }

  SimShard& shard;
  SimRunner runner;
  GrpcLink link;
  AgentLogic logic;
  std::vector<TaskEvent> at_once;
  absl::Duration wake = absl::InfiniteDuration();  // of the earliest Tick in the heap
  bool begun = false;
};

void SimShard::Add(const std::string& name, v1::NodeInventory inventory,
                   const SimBehaviour& behaviour, const std::vector<AgentServer>& servers) {
  absl::MutexLock lock(&mutex_);
  AgentLogic::Options options{.node = name,
                              .agent_id = absl::StrCat("simulated-", name),
                              .boot_id = boot_id_,
                              .version = kBerthVersion,
                              .inventory = std::move(inventory),
                              .keep_ended = kKeepEnded};
  nodes_.push_back(std::make_unique<Node>(*this, std::move(options), behaviour, servers));
  Node* node = nodes_.back().get();
  node->wake = SystemClock().Steady() + kConnectSpacing * static_cast<double>(nodes_.size());
  Push(node->wake, node, std::nullopt);
}

void SimShard::Run() {
  thread_ = std::thread([this] { Loop(); });
}

SimShard::~SimShard() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    earlier_.Signal();
  }
  if (thread_.joinable()) thread_.join();
  {
    absl::MutexLock lock(&mutex_);
    for (const std::unique_ptr<Node>& node : nodes_) node->link.Disconnect();
  }
  nodes_.clear();  // waits for gRPC, whose threads may still need the mutex
}

void SimShard::Push(absl::Duration at, Node* node, std::optional<TaskEvent> event) {
  timers_.push({.at = at, .sequence = ++sequence_, .node = node, .event = std::move(event)});
  if (at < wait_until_) earlier_.Signal();
}

void SimShard::Deliver(Node& node, const TaskEvent& event) {
  if (node.runner.Accept(event)) node.logic.OnTaskEvent(Now(), event);
}

void SimShard::Settle(Node& node) {
  while (!node.at_once.empty()) {
    for (const TaskEvent& event : std::exchange(node.at_once, {})) Deliver(node, event);
  }
  const absl::Duration wake = node.logic.NextWake();
  if (wake >= node.wake) return;
  node.wake = wake;
  Push(wake, &node, std::nullopt);
}

void SimShard::Serve(Timer timer) {
  Node& node = *timer.node;
  if (timer.event) {
    Deliver(node, *timer.event);
  } else {
    if (timer.at != node.wake) return;  // an earlier Tick replaced it
    node.wake = absl::InfiniteDuration();
    if (node.begun) {
      node.logic.Tick(Now());
    } else {
      node.begun = true;
      node.logic.Begin(Now(), {});
    }
  }
  Settle(node);
}

// The mutex is released after every timer: messages must not wait for a whole burst.
void SimShard::Loop() {
  for (;;) {
    absl::MutexLock lock(&mutex_);
    const absl::Duration now = SystemClock().Steady();
    if (stopping_) return;
    if (!timers_.empty() && timers_.top().at <= now) {
      Timer timer = timers_.top();
      timers_.pop();
      Serve(std::move(timer));
      continue;
    }
    wait_until_ = timers_.empty() ? now + kLongest : std::min(timers_.top().at, now + kLongest);
    earlier_.WaitWithTimeout(&mutex_, wait_until_ - now);
    wait_until_ = -absl::InfiniteDuration();
  }
}

void SimShard::AddCounters(Simulation::Counters* counters) {
  absl::MutexLock lock(&mutex_);
  counters->nodes += nodes_.size();
  counters->running += counters_.running;
  counters->started += counters_.started;
  for (const std::unique_ptr<Node>& node : nodes_) {
    const bool registered = node->logic.registered();
    counters->registered += registered ? 1 : 0;
    if (!registered && counters->trouble.empty()) counters->trouble = node->logic.last_error();
  }
}

bool SimShard::Tell(const TaskId& id, absl::string_view datagram) {
  absl::MutexLock lock(&mutex_);
  const absl::Duration now = SystemClock().Steady();
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [&](const auto& node) { return node->runner.Tell(id, datagram, now); });
}

Simulation::Simulation() = default;
Simulation::~Simulation() = default;

namespace {

struct PlannedNode {
  std::string name;
  const config::v1::SimulatedNodes* nodes;
  const SimBehaviour* behaviour;
  std::string rack;  // "" = none
};

constexpr char kRackLabel[] = "topology.berth/rack";

absl::Status CheckNodes(const config::v1::SimulatedNodes& nodes) {
  for (const double rate : {nodes.failure_rate(), nodes.refusal_rate()}) {
    if (!(rate >= 0 && rate <= 1)) {
      return absl::InvalidArgumentError(absl::StrCat(nodes.name(), ": rates must be within 0..1"));
    }
  }
  if (nodes.rack_size() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(nodes.name(), ": rackSize must be 0 or more"));
  }
  if (nodes.gpu_memory_bytes() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(nodes.name(), ": gpuMemory must be 0 or more"));
  }
  for (const auto& [kind, count] : nodes.devices()) {
    if (count < 0 || count > 128) {
      return absl::InvalidArgumentError(absl::StrCat(nodes.name(), ": devices.", kind, ": 0..128"));
    }
  }
  for (const auto& [kind, model] : nodes.models()) {
    if (!nodes.devices().contains(kind)) {
      return absl::InvalidArgumentError(
          absl::StrCat(nodes.name(), ": models.", kind, ": no such devices"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PlannedNode>> PlanNodes(const config::v1::Simulation& config,
                                                   std::vector<SimBehaviour>* behaviours) {
  std::vector<PlannedNode> planned;
  std::set<std::string> names;
  int racks = 0;                                                  // across all sets
  behaviours->reserve(static_cast<size_t>(config.nodes_size()));  // keeps pointers into it valid
  for (const config::v1::SimulatedNodes& nodes : config.nodes()) {
    if (absl::Status status = CheckNodes(nodes); !status.ok()) return status;
    auto expanded = ExpandNamePattern(nodes.name());
    if (!expanded.ok()) return expanded.status();
    behaviours->push_back(ToBehaviour(nodes));
    for (size_t i = 0; i < expanded->size(); ++i) {
      const std::string& name = (*expanded)[i];
      if (!names.insert(name).second) {
        return absl::InvalidArgumentError(absl::StrCat("node ", name, " is listed twice"));
      }
      const auto size = static_cast<size_t>(nodes.rack_size());
      if (size > 0 && i % size == 0) ++racks;
      planned.push_back({name, &nodes, &behaviours->back(),
                         size > 0 ? absl::StrCat("rack-", racks) : std::string()});
    }
  }
  if (planned.empty()) return absl::InvalidArgumentError("no nodes");
  if (planned.size() > kMaxSimulatedNodes) return absl::InvalidArgumentError("too many nodes");
  return planned;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Simulation>> Simulation::Create(
    const config::v1::Simulation& config,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    const std::function<void(const TaskId&)>& on_prepare) {
  std::unique_ptr<Simulation> simulation(new Simulation);
  auto planned = PlanNodes(config, &simulation->behaviours_);
  if (!planned.ok()) return planned.status();
  for (SimBehaviour& behaviour : simulation->behaviours_) behaviour.on_prepare = on_prepare;
  size_t connections = config.connections() > 0
                           ? static_cast<size_t>(config.connections())
                           : (planned->size() + kNodesPerConnection - 1) / kNodesPerConnection;
  connections = std::min<size_t>(connections, kMaxConnections);
  std::vector<std::vector<AgentServer>> channels;
  for (size_t i = 0; i < connections; ++i) {
    channels.push_back(MakeAgentChannels(config.server(), credentials));
    for (AgentServer& server : channels.back()) server.renew = nullptr;  // nodes share it
  }
  const uint64_t seed = config.seed() != 0 ? config.seed() : 1;
  const std::string boot_id = NewAgentId();  // no task of an earlier process is running
  for (size_t i = 0; i < kShards; ++i) {
    simulation->shards_.push_back(std::make_unique<SimShard>(seed + i, boot_id));
  }
  const std::string rack_label = kRackLabel;
  for (size_t i = 0; i < planned->size(); ++i) {
    const PlannedNode& node = (*planned)[i];
    absl::StatusOr<v1::NodeInventory> inventory = SimInventory(node.name, *node.nodes);
    if (!inventory.ok()) return inventory.status();
    if (!node.rack.empty()) (*inventory->mutable_labels())[rack_label] = node.rack;
    simulation->shards_[i % kShards]->Add(node.name, *std::move(inventory), *node.behaviour,
                                          channels[i % connections]);
  }
  for (const std::unique_ptr<SimShard>& shard : simulation->shards_) shard->Run();
  return simulation;
}

bool Simulation::Tell(const TaskId& id, absl::string_view datagram) {
  return std::any_of(shards_.begin(), shards_.end(),
                     [&](const auto& shard) { return shard->Tell(id, datagram); });
}

Simulation::Counters Simulation::counters() const {
  Counters counters;
  for (const std::unique_ptr<SimShard>& shard : shards_) shard->AddCounters(&counters);
  return counters;
}

}  // namespace berth
