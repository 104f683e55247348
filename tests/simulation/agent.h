// One agent process: its real logic and journal over simulated processes and a simulated network.
#ifndef BERTH_TESTS_SIMULATION_AGENT_H_
#define BERTH_TESTS_SIMULATION_AGENT_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "clients/agent/grpc_link.h"
#include "clients/agent/journal.h"
#include "clients/agent/logic.h"
#include "clients/agent/sim_node.h"
#include "tests/simulation/network.h"
#include "tests/simulation/processes.h"

namespace berth::simulation {

// The equivalent of ProcessRunner for simulated processes.
class Runner final : public TaskRunner {
 public:
  // `after` delivers the event later.
  using After = std::function<void(absl::Duration, TaskEvent)>;
  Runner(Processes* processes, Observer* observer, size_t node, Dice* dice, double refusals,
         After after)
      : processes_(processes),
        observer_(observer),
        node_(node),
        dice_(dice),
        refusals_(refusals),
        after_(std::move(after)) {}

  void Prepare(const TaskId& id, const v1::TaskLaunch& launch, std::optional<int> port) override;
  void Discard(const TaskId& id) override;
  void Start(const TaskId& id, const v1::TaskLaunch& launch, const v1::Start& start) override;
  void Signal(const TaskId&, const std::string&) override {}
  void Freeze(const TaskId& id, int64_t request, bool saves_devices) override;
  void Kill(const TaskId& id, const std::string& signal, absl::Duration grace,
            v1::TaskReport::Cause cause) override;
  void Adopt(const agent::v1::TaskRecord& record) override;
  void Remove(const TaskId& id) override { processes_->Remove(id); }
  bool SetLease(absl::Duration soon, absl::Duration deadline) override {
    processes_->lease = soon;
    processes_->longer_lease = deadline;
    return true;
  }

  // A supervisor reports a change.
  void Changed(const TaskId& id);
  // Whether to report the event; events of discarded tasks are dropped.
  bool Accept(const TaskEvent& event);

 private:
  void Tell(const TaskId& id, TaskEvent::Kind kind);
  void Finish(const TaskId& id, const Processes::Status& status);

  Processes* const processes_;
  Observer* const observer_;
  const size_t node_;
  Dice* const dice_;
  const double refusals_;
  const After after_;
  std::set<TaskId> preparing_;
  std::map<TaskId, bool> live_;       // whether kRunning was reported
  std::map<TaskId, int64_t> frozen_;  // as Processes::Status; absent: nothing was reported
  int next_port_ = 0;
};

// Images that come and go, whatever the tasks are.
class SomeImages final : public NodeImageSource {
 public:
  static constexpr uint64_t kImages = 3;
  static std::string Name(uint64_t image) {
    return absl::StrCat("registry.example/team/image:", image);
  }

  explicit SomeImages(uint64_t seed) : dice_(seed, 0x696d6773) {}
  v1::NodeImages Images() override {
    if (dice_.Chance(0.01)) held_ ^= uint64_t{1} << dice_.Below(kImages);
    v1::NodeImages images;
    for (uint64_t image = 0; image < kImages; ++image) {
      if ((held_ >> image & 1) != 0) images.add_images()->set_image(Name(image));
    }
    return images;
  }
  void Prefetch(const v1::Prefetch&) override {}

 private:
  Dice dice_;
  uint64_t held_ = 1;
};

// The same for all agents of a machine.
struct AgentSetup {
  size_t node = 0;
  std::string name;
  std::string boot_id;
  std::string new_agent_id;  // if the disk has none
  v1::NodeInventory inventory;
  absl::Duration keep_ended;
  double refusals = 0;
  uint64_t seed = 0;
  std::function<Instant()> now;
  std::function<void()> on_fatal;  // called later: the journal failed, and the process must end
};

class Agent final : public LinkEvents {
 public:
  // INTERNAL and others: the journal cannot be read or written. `network` etc. must outlive it.
  static absl::StatusOr<std::unique_ptr<Agent>> Create(AgentSetup setup, Scheduler* scheduler,
                                                       Network* network, Disk* disk,
                                                       Processes* processes, Observer* observer);
  ~Agent() override;

  void Begin();
  // The process is killed; `powered`: the machine still has power. The caller then destroys it.
  void Die(bool powered);
  void OnMessage(uint64_t connection, v1::ServerMessage message) override;
  void OnDisconnected(uint64_t connection, const std::string& reason) override;
  void OnProcess(const TaskId& id) { runner_.Changed(id); }
  void SetInventory(v1::NodeInventory inventory);

  bool registered() const { return logic_->registered(); }
  uint64_t epoch() const { return logic_->epoch(); }
  size_t live_tasks() const { return logic_->live_tasks(); }
  const std::string& last_error() const { return logic_->last_error(); }
  const ActorPtr& actor() const { return actor_; }

 private:
  Agent(AgentSetup setup, Scheduler* scheduler, Network* network, Processes* processes,
        Observer* observer);
  absl::Status Init(Disk* disk);
  void OnTaskEvent(const TaskEvent& event);
  // Call after each call into the logic: schedules the next tick.
  void Settle();

  const AgentSetup setup_;
  Scheduler* const scheduler_;
  Processes* const processes_;
  const ActorPtr actor_ = std::make_shared<Actor>();
  Dice dice_;
  Runner runner_;
  Network::Link link_;
  NoLogs logs_;
  SomeImages images_;
  std::unique_ptr<FileJournal> journal_;
  bool rebooted_ = false;
  std::unique_ptr<AgentLogic> logic_;
  absl::Duration wake_ = absl::InfiniteDuration();  // time of the earliest scheduled tick
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_AGENT_H_
