#include "tests/simulation/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/model/state_editor.h"
#include "server/config/config.h"
#include "server/convert/values.h"

namespace berth::simulation {
namespace {

constexpr absl::Duration kJobTtl = absl::Hours(2);
constexpr absl::Duration kHistory = absl::Hours(2);
// After the last fault: pauses end, and clocks that were set back catch up.
constexpr absl::Duration kSettle = absl::Minutes(30);
// After that. The worst case for a node: an agent whose disk is lost holds its name until a lease,
// a grace and a margin have passed, and it retries every 30 s.
constexpr absl::Duration kHealWithin = absl::Minutes(10);
constexpr absl::Duration kFinishWithin = absl::Hours(24);
constexpr absl::Duration kLook = absl::Seconds(10);
// A hang lasts for its dump_wait, 10 s, at least.
constexpr absl::Duration kLookForHangs = absl::Seconds(3);
// A machine whose clock goes on while its processes are frozen looks as if they hung, for the
// longest watchdog and grace.
constexpr absl::Duration kFreezeExcuses = absl::Minutes(15);
constexpr int64_t kGpuBytes = int64_t{40} << 30;
constexpr int kMaxTasksPerGpu = 4;

// "" for a job that has ended or was deleted.
std::string WhyOpen(const ClusterState& state, const std::string& name) {
  const Job* job = state.FindJob(name);
  if (job == nullptr || Ended(job->status.state)) return "";
  const PendingClass* waiting = state.pending().FindClass(job->pending_class);
  const std::string why = waiting == nullptr || !waiting->blocked ? "" : waiting->blocked->detail;
  const int code = waiting == nullptr || !waiting->blocked ? 0 : waiting->blocked->code;
  return absl::StrCat("state ", static_cast<int>(job->status.state), ", verdict ", code, ", ",
                      job->status.suspended ? "suspended, " : "", job->status.message, why);
}

}  // namespace

World::World(const Options& options)
    : options_(options), dice_(options.seed, 0x776f726c), trace_(options.print) {
  MakeMachines();
  MakeServer();
  MakeClients();
  faults_ = std::make_unique<Faults>(options_, this, &scheduler_, &trace_);
}

World::~World() = default;

void World::Fail(const std::string& what) {
  if (!failure_.empty()) return;
  failure_ = what;
  trace_.Say(scheduler_.now(), "FAILURE", what);
}

// ---- Setup

void World::MakeMachines() {
  const auto count = static_cast<size_t>(dice_.Between(2, std::max(2, options_.max_nodes)));
  network_ = std::make_unique<Network>(&scheduler_, &trace_, options_.seed, count);
  const int gpus = dice_.Chance(0.7) ? static_cast<int>(dice_.Between(1, 8)) : 0;
  constexpr absl::Duration kKept[] = {absl::Minutes(10), absl::Hours(1), absl::Hours(24)};
  const absl::Duration keep_ended = kKept[dice_.Below(std::size(kKept))];
  shared_memory_bytes_ = gpus > 0 && dice_.Chance(0.5) ? kGpuBytes : 0;
  const size_t racks = count >= 4 && dice_.Chance(0.5) ? 2 : 1;
  rack_nodes_ = racks > 1 ? static_cast<int>(count / racks) : 0;
  std::vector<NodeRoom> rooms;
  std::vector<MachineSpec> specs;
  for (size_t i = 0; i < count; ++i) {
    MachineSpec spec{.index = i,
                     .name = absl::StrCat("n", i),
                     .inventory = {},
                     .keep_ended = keep_ended,
                     .refusals = options_.Has(Fault::kRefuse) && dice_.Chance(0.2) ? 0.1 : 0,
                     .seed = dice_.Seed()};
    spec.inventory.set_cpu_millis(dice_.Between(8, 32) * 1000);
    spec.inventory.set_memory_bytes(int64_t{64} << 30);
    spec.inventory.set_address(spec.name);
    spec.inventory.set_freezes(true);
    spec.inventory.set_checkpoints_devices(i % 3 != 2);
    const int own = gpus == 0 ? 0 : static_cast<int>(dice_.Between(gpus, 8));
    for (int g = 0; g < own; ++g) {
      v1::Device& device = *spec.inventory.add_devices();
      device.set_kind("gpu");
      device.set_uuid(absl::StrCat(spec.name, "-gpu-", g));
      device.set_numa_node(-1);
      device.set_memory_bytes(kGpuBytes);
      if (shared_memory_bytes_ > 0) {
        device.set_max_tasks(kMaxTasksPerGpu);
        device.set_oversubscription(i % 2 == 0 ? 200 : 100);
      }
    }
    rooms.push_back({.cpu_millis = spec.inventory.cpu_millis(),
                     .memory_bytes = spec.inventory.memory_bytes(),
                     .max_tasks = shared_memory_bytes_ > 0 ? kMaxTasksPerGpu : 1,
                     .rack = i % racks});
    specs.push_back(std::move(spec));
  }
  Install(std::move(rooms), std::move(specs));
}

void World::Install(std::vector<NodeRoom> rooms, std::vector<MachineSpec> specs) {
  safety_ = std::make_unique<Safety>(
      &scheduler_, &trace_, std::move(rooms), kJobTtl, [this] { return server_->clock().Now(); },
      [this](const std::string& what) { Fail(what); });
  safety_->OnRestored(1, true);
  collectives_ = std::make_unique<Collectives>(
      safety_.get(), options_.seed, [this](size_t node, const TaskId& id, absl::Duration delay) {
        machines_[node]->FailTask(id, delay);
      });
  const Surroundings around{.scheduler = &scheduler_,
                            .trace = &trace_,
                            .network = network_.get(),
                            .observer = collectives_.get(),
                            .start = start_,
                            .fail = [this](const std::string& what) { Fail(what); }};
  for (MachineSpec& spec : specs) {
    machines_.push_back(std::make_unique<Machine>(std::move(spec), around));
  }
}

void World::MakeServer() {
  config::v1::Server config;
  constexpr absl::Duration kLeases[] = {absl::Seconds(5), absl::Seconds(15), absl::Seconds(60)};
  const absl::Duration lease = kLeases[dice_.Below(std::size(kLeases))];
  ToProto(lease, config.mutable_lease());
  ToProto(lease / 3, config.mutable_heartbeat_interval());
  ToProto(kJobTtl, config.mutable_finished_job_ttl());
  ToProto(kHistory, config.mutable_history());
  if (dice_.Chance(0.5)) {  // run times of similar jobs are then predicted, even after crashes
    config::v1::Scheduling& scheduling = *config.mutable_scheduling();
    scheduling.mutable_prediction()->set_enabled(true);
    scheduling.add_job_orders("shortest_first");
    ToProto(dice_.Between(absl::Minutes(10), absl::Hours(2)),
            scheduling.mutable_shortest_first()->mutable_age());
    scheduling.mutable_backfill()->set_fit(dice_.Chance(0.5)
                                               ? config::v1::Backfill::PREDICTED
                                               : config::v1::Backfill::PREDICTED_UNLESS_AGED);
  }
  BERTH_CHECK(CompleteConfig(config).ok());
  server_ = std::make_unique<Server>(config, &scheduler_, &trace_, start_, options_.seed,
                                     [this](const std::string& what) { Fail(what); });
  network_->SetServer(server_.get());
}

void World::MakeClients() {
  const int queues = static_cast<int>(dice_.Between(1, 3));
  for (int i = 0; i < queues; ++i) queues_.push_back(absl::StrCat("q", i));
  Workload workload{.queues = queues_,
                    .cpu_millis = machines_[0]->spec().inventory.cpu_millis(),
                    .gpus = machines_[0]->spec().inventory.devices_size(),
                    .shared_memory_bytes = shared_memory_bytes_,
                    .nodes = static_cast<int>(machines_.size()),
                    .rack_nodes = rack_nodes_,
                    .between = dice_.Between(absl::Seconds(20), absl::Seconds(90)),
                    .max_jobs = options_.max_jobs,
                    .max_open = dice_.Between(20, 150)};
  for (const auto& machine : machines_) {
    const v1::NodeInventory& inventory = machine->spec().inventory;
    workload.cpu_millis = std::min(workload.cpu_millis, inventory.cpu_millis());
    workload.gpus = std::min(workload.gpus, inventory.devices_size());
  }
  borrows_ = dice_.Chance(0.5);
  workload.borrows = borrows_;
  clients_ = std::make_unique<Clients>(std::move(workload), &scheduler_, &trace_, network_.get(),
                                       server_.get(), safety_.get(), options_.seed,
                                       [this](const std::string& what) { Fail(what); });
}

void World::JumpServerClock(absl::Duration by) {
  safety_->NoteTime();
  server_->clock().Jump(by);
  safety_->NoteTime();
}

void World::StartServer() {
  if (server_->up()) return;
  server_->Start();
  server_->loop().Read([&](const ClusterState& state, uint64_t) {
    safety_->CheckLoaded(state);
    if (const absl::Status status = CheckConsistency(state); !status.ok()) {
      Fail(absl::StrCat("the loaded state is inconsistent: ", status.ToString()));
    }
    return 0;
  });
}

// It contains all answers to clients so far: nothing is answered before it is durable.
void World::Backup() {
  server_->Backup();
  safety_->OnBackup();
  trace_.Add(scheduler_.now(), "backup");
}

void World::RestoreServer(bool fresh) {
  fresh ? server_->Replace() : server_->Restore();
  safety_->OnRestored(server_->incarnation(), fresh);
  trace_.Add(scheduler_.now(), "restored", static_cast<int64_t>(server_->incarnation()), fresh);
  if (!fresh) return clients_->LookAgain();
  StartServer();  // an operator creates the queues before clients are served
  CreateQueues(static_cast<int>(queues_.size()));
  CreateRacks();
  server_->Settle();
}

void World::CreateRacks() {
  if (rack_nodes_ == 0) return;
  for (int rack = 0; rack < 2; ++rack) {
    HyperNodeSpec spec{.name = absl::StrCat("rack-", rack)};
    for (size_t i = static_cast<size_t>(rack); i < machines_.size(); i += 2)
      spec.members.push_back({.text = machines_[i]->spec().name});
    server_->Change(
        CommandClass::kNewWork,
        [spec](Turn& turn) {
          return turn.Emit(HyperNodeChanged{turn.state().next_hyper_node_id(), spec});
        },
        [](const absl::Status& status) { BERTH_CHECK(status.ok()); });
  }
}

// Sometimes queues have deserved shares, so that others borrow and are reclaimed.
void World::CreateQueues(int count) {
  int64_t cpus = 0;
  for (const auto& machine : machines_) cpus += machine->spec().inventory.cpu_millis() / 1000;
  const int64_t share = borrows_ ? cpus / count : 0;
  for (int i = 0; i < count; ++i) {
    server_->Change(
        CommandClass::kNewWork,
        [share, name = queues_[static_cast<size_t>(i)]](Turn& turn) -> absl::Status {
          QueueSpec spec;
          spec.name = name;
          if (share > 0) spec.deserved = {{"cpu", share * kWhole}};
          return turn.Emit(QueueCreated{turn.state().next_queue_id(), spec});
        },
        [](const absl::Status& status) { BERTH_CHECK(status.ok()); });
  }
}

// ---- Hangs

void World::WatchHangs() {
  scheduler_.After(kLookForHangs, watcher_, [this] { WatchHangs(); });
  if (!server_->up()) return;
  server_->loop().Read([&](const ClusterState& state, uint64_t) {
    state.jobs().ForEach([&](JobId, const Job& job) {
      if (!Ended(job.status.state) && Hangs(job)) CheckHang(job);
    });
    return 0;
  });
}

void World::CheckHang(const Job& job) {
  hangs_.insert({job.id, job.status.epoch});
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    if (task.state != TaskState::kRunning || !HangsWith(job, i)) continue;
    const TaskId id{job.id.value, i, task.attempt, server_->incarnation()};
    for (const auto& machine : machines_) {
      const bool stood_still = scheduler_.now() - machine->thawed() < kFreezeExcuses;
      if (!machine->Runs(id) || machine->Hangs(id) || stood_still) continue;
      Fail(absl::StrCat("still: task ", i, " of job ", job.name, " makes steps on ",
                        machine->spec().name, ", but hangs for the server"));
    }
  }
}

// ---- Run

bool World::StepUntil(absl::Duration limit) {
  while (failure_.empty() && scheduler_.Step(limit)) {
  }
  return failure_.empty();
}

Outcome World::Run() {
  StartServer();
  CreateQueues(static_cast<int>(queues_.size()));
  CreateRacks();
  StepUntil(absl::Seconds(1));
  for (const auto& machine : machines_) machine->PowerOn();
  clients_->Begin();
  faults_->Begin();
  WatchHangs();
  if (StepUntil(absl::Hours(options_.hours))) {
    clients_->Finish();
    faults_->Stop();
    StepUntil(scheduler_.now() + kSettle);
    for (const auto& machine : machines_) {
      machine->SayInventory(machine->spec().inventory);
      clients_->Steer(machine->spec().name, false);
    }
    Expect(kHealWithin, [this] { return UnwellNodes(); });
    Expect(kFinishWithin, [this] { return UnfinishedJobs(); });
  }
  return {.failure = failure_,
          .hash = trace_.hash(),
          .simulated = scheduler_.now(),
          .steps = scheduler_.steps(),
          .starts = safety_->starts(),
          .jobs = static_cast<uint64_t>(clients_->submitted()),
          .hangs = hangs_.size()};
}

void World::Expect(absl::Duration bound, const std::function<std::string()>& missing) {
  const absl::Duration limit = scheduler_.now() + bound;
  while (failure_.empty() && !missing().empty()) {
    if (scheduler_.now() >= limit) {
      return Fail(absl::StrCat("alive: after ", absl::FormatDuration(bound), " without faults ",
                               missing()));
    }
    StepUntil(scheduler_.now() + kLook);
  }
}

std::string World::UnwellNodes() {
  for (const auto& machine : machines_) {
    const std::string& name = machine->spec().name;
    if (machine->agent() == nullptr) return absl::StrCat(name, " has no agent");
    if (!machine->agent()->registered()) {
      return absl::StrCat(name, " is not registered: ", machine->agent()->last_error());
    }
    const bool ready = server_->loop().Read([&](const ClusterState& state, uint64_t) {
      safety_->CheckBlame(state);
      const Node* node = state.FindNode(name);
      return node != nullptr && node->status.state == NodeState::kReady && !node->status.cordoned;
    });
    if (!ready) return absl::StrCat(name, " is not ready at the server");
  }
  return "";
}

// Every job must have ended, which implies that it started if it could, and left no process.
std::string World::UnfinishedJobs() {
  if (clients_->waiting() > 0) return absl::StrCat(clients_->waiting(), " calls have no answer");
  for (const auto& [name, job] : safety_->jobs()) {
    const std::string open = server_->loop().Read(
        [&name = name](const ClusterState& state, uint64_t) { return WhyOpen(state, name); });
    if (!open.empty()) return absl::StrCat("job ", name, " has not ended: ", open);
  }
  for (const auto& machine : machines_) {
    if (machine->processes() > 0) {
      return absl::StrCat(machine->processes(), " processes run on ", machine->spec().name);
    }
  }
  return "";
}

}  // namespace berth::simulation
