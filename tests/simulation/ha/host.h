// One machine with a berthd of a cluster with high availability: its disk, and the process, which
// ends and starts again. In simulated time, without threads.
#ifndef BERTH_TESTS_SIMULATION_HA_HOST_H_
#define BERTH_TESTS_SIMULATION_HA_HOST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/ha/member.h"
#include "server/loop/loop.h"
#include "storage/memory/memory_store.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/etcd/simulated_etcd.h"
#include "tests/simulation/scheduler.h"

namespace berth::simulation {

// Ends the process: thrown where the product would call _exit.
struct ProcessEnds {};

struct HostOptions {
  std::string name;
  absl::Duration lease = absl::Seconds(5);  // of the leader
  absl::Duration poll = absl::Milliseconds(250);
  absl::Duration agent_lease = absl::Seconds(15);
  absl::Duration fence_margin = absl::Seconds(2);
  ReplicatedLogSize bounds = {.bytes = 64 << 10, .parts = 200};
};

class Host {
 public:
  // What all hosts share. Outlives them.
  struct Around {
    Scheduler* scheduler = nullptr;
    // Until when others may go on while a call is under way: no longer than the calls of those that
    // wait below it on the stack.
    absl::Duration* horizon = nullptr;
    SimulatedEtcd* etcd = nullptr;
    const bool* healed = nullptr;  // no faults any more
    std::function<void(const std::string&)> fail;
    // A store to copy, of a host that runs; null: there is none.
    std::function<const MemoryStore*(const Host&)> other_store;
    // Every durable turn, as the host learns of it.
    std::function<void(const Host&, uint64_t revision, const std::string& turn)> on_durable;
    std::function<void(const Host&, const Event&)> on_event;
  };
  Host(HostOptions options, Around around, std::unique_ptr<MemoryStore> disk, uint64_t seed);
  ~Host();

  void Start();
  // kill -9. With `power_cut` also what the disk had not synced, in part.
  void Crash(bool power_cut);
  // SIGSTOP for a while.
  void Pause(absl::Duration how_long);
  bool up() const { return process_ != nullptr; }
  bool leads() const;
  uint64_t term() const;
  // Nothing can be written to the local disk.
  void SetDiskFull(bool full);
  void JumpClock(absl::Duration by) { jumped_ += by; }
  // Stops taking commands and lets another lead.
  void HandOver();

  const std::string& name() const { return options_.name; }
  const HostOptions& options() const { return options_; }
  const ActorPtr& actor() const { return actor_; }
  SimulatedEtcd::Client& etcd() { return client_; }
  const MemoryStore& disk() const { return *disk_; }
  std::string NameOf(NodeId node) const;
  uint64_t differences() const { return differences_; }
  uint64_t terms_led() const { return terms_led_; }

  // ---- Calls of clients and agents, as services and gateway handle them. Nothing is answered if
  // the process ends.
  using Answer = std::function<void(absl::StatusOr<int64_t>)>;
  void Submit(const std::string& job, const std::string& request, Answer answer);
  void Update(const std::string& job, int32_t priority, const std::string& request, Answer answer);
  // The priority; NOT_FOUND.
  void Get(const std::string& job, Answer answer);
  // The epoch.
  void Register(const std::string& node, Answer answer);
  // FAILED_PRECONDITION: register again.
  void Heartbeat(const std::string& node, uint64_t epoch, uint64_t sequence, Answer answer);

  // Runs `work` of the process, which may end it.
  void Run(const std::function<void()>& work);

 private:
  struct Process;
  class Disk;
  class Committing;

  bool Open(Process& process);
  void Drive();
  void Every(absl::Duration period, std::function<void()> call);
  void StepMember();
  void Wake();
  void PlanTurn(absl::Duration at);
  void RunTurn();
  void Between();
  void End();
  void Change(const std::string& request, std::function<absl::StatusOr<int64_t>(Turn&)> change,
              Answer answer);

  const HostOptions options_;
  const Around around_;
  Dice dice_;
  std::unique_ptr<MemoryStore> disk_;
  SimulatedEtcd::Client client_;
  ActorPtr actor_ = std::make_shared<Actor>();
  std::unique_ptr<Process> process_;
  bool inside_ = false;  // work of the process is on the stack
  bool ends_ = false;    // it is to end as soon as that work can
  bool power_cut_ = false;
  uint64_t differences_ = 0, terms_led_ = 0;
  uint64_t processes_ = 0;
  absl::Duration jumped_;
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_HA_HOST_H_
