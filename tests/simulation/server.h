// berthd without threads: its loop, controllers and store, in a process that dies and restarts, and
// a disk that keeps what was synced.
#ifndef BERTH_TESTS_SIMULATION_SERVER_H_
#define BERTH_TESTS_SIMULATION_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "berth/config/v1/config.pb.h"
#include "berth/v1/job.pb.h"
#include "server/commands/request_table.h"
#include "server/controllers/agent_gateway.h"
#include "server/controllers/dispatcher.h"
#include "server/controllers/executor.h"
#include "server/controllers/lease_keeper.h"
#include "server/loop/committer.h"
#include "server/loop/loop.h"
#include "storage/memory/memory_store.h"
#include "storage/preserved.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/network.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/trace.h"

namespace berth::simulation {

// Steady time never stops; the wall clock jumps on request.
class SimClock final : public Clock {
 public:
  SimClock(const Scheduler* scheduler, absl::Time start) : scheduler_(scheduler), start_(start) {}
  absl::Time Now() override { return start_ + scheduler_->now() + offset_; }
  absl::Duration Steady() override { return scheduler_->now() + absl::Hours(1); }
  void Jump(absl::Duration by) { offset_ += by; }

 private:
  const Scheduler* const scheduler_;
  const absl::Time start_;
  absl::Duration offset_;
};

struct ServerDisk {
  absl::Duration latency = absl::Microseconds(500);  // mean of one sync
  bool full = false;
};

class Server final : public ServerPort {
 public:
  // `config` must be complete.
  Server(const config::v1::Server& config, Scheduler* scheduler, Trace* trace, absl::Time start,
         uint64_t seed, std::function<void(const std::string&)> fail);
  ~Server() override;

  void Start();
  // Copies the store in its current durable state.
  void Backup() { backup_ = store_->Copy(0); }
  // While the server does not run: restores the copy, or replaces the store by an empty one. The
  // incarnation is new, but job uids begin where they did before.
  bool has_backup() const { return backup_ != nullptr; }
  void Restore();
  void Replace();
  uint64_t incarnation() const { return store_->Incarnation(); }
  // A prefix of the batches in flight is on disk, the others are lost.
  void Crash();
  bool up() const { return process_ != nullptr; }
  // As before a planned stop, or for `berth cluster pause`: agents that can be reached get a longer
  // lease.
  void GrantLongerLease();
  void Pause(absl::Duration how_long);
  // Completes all work so far at once.
  void Settle();

  AgentGateway* gateway() override;
  uint64_t process() const override { return processes_; }
  const ActorPtr& actor() const override { return actor_; }
  Loop& loop();
  SimClock& clock() { return clock_; }
  // Executes a request like a service, at once. `answer` is called when it is durable, or never if
  // the process ends before. UNAVAILABLE if the server does not run.
  using Answer = std::function<void(absl::Status, v1::SubmitJobsResponse)>;
  void Submit(std::shared_ptr<const v1::SubmitJobsRequest> request, Answer answer);
  void Change(CommandClass command_class, std::function<absl::Status(Turn&)> change,
              std::function<void(absl::Status)> answer);

  ServerDisk disk;

 private:
  struct Process;
  class DiskCommitter;
  void Wake();
  void RunTurn();
  void Plan(absl::Duration at);
  void Every(absl::Duration period, std::function<void()> call);
  void MaintainLog();
  void Use(std::unique_ptr<MemoryStore> store);

  const config::v1::Server config_;
  Scheduler* const scheduler_;
  Trace* const trace_;
  const std::function<void(const std::string&)> fail_;
  Dice dice_;
  SimClock clock_;
  std::unique_ptr<MemoryStore> store_, backup_;
  InlineExecutor executor_;
  uint64_t processes_ = 0;
  bool restored_ = false;
  uint64_t restored_sequence_ = 0;  // no batch was written since
  ActorPtr actor_ = std::make_shared<Actor>();
  std::unique_ptr<Process> process_;
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_SERVER_H_
