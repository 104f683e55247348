#include "tests/simulation/faults.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/proto_time.h"

namespace berth::simulation {
namespace {

constexpr double kLosses[] = {0.005, 0.02, 0.1, 0.3};
constexpr double kReplays[] = {0.01, 0.1, 0.5};
constexpr absl::Duration kDelays[] = {absl::Milliseconds(20), absl::Milliseconds(300),
                                      absl::Seconds(3)};
constexpr absl::Duration kCalmLatency = absl::Microseconds(200);
constexpr uint64_t kFalseReportIds = uint64_t{1} << 40;  // far from real ids

}  // namespace

Faults::Faults(const Options& options, FaultTarget* target, Scheduler* scheduler, Trace* trace)
    : options_(options),
      target_(target),
      scheduler_(scheduler),
      trace_(trace),
      dice_(options.seed, 0x6661756c) {
  constexpr double kPaces[] = {0.3, 1, 1, 3};
  pace_ = kPaces[dice_.Below(std::size(kPaces))];
}

void Faults::Begin() {
  Repeat(absl::Minutes(10), [this] { ChangeWeather(); });
  Often(Fault::kClog, absl::Minutes(15), [this] {
    Clog(dice_.Chance(0.7), dice_.Chance(0.7), dice_.Around(absl::Seconds(20)), false);
  });
  Often(Fault::kPartition, absl::Minutes(30), [this] { Partition(); });
  Often(Fault::kServer, absl::Minutes(30), [this] { KillServer(); });
  Often(Fault::kAgent, absl::Minutes(10), [this] { KillAgent(); });
  Often(Fault::kMachine, absl::Minutes(60), [this] { PowerOff(); });
  Often(Fault::kPause, absl::Minutes(20), [this] { Pause(); });
  Often(Fault::kClock, absl::Hours(2), [this] { JumpClock(); });
  Often(Fault::kDisk, absl::Minutes(40), [this] { BreakDisk(); });
  Often(Fault::kLie, absl::Minutes(5), [this] { Lie(); });
  Often(Fault::kRestore, absl::Hours(2), [this] { GoBack(); });
  // Not faults: an operator drains a node, in any way, and uncordons nodes that were drained.
  Repeat(absl::Minutes(15), [this] { DrainNode(); });
  Repeat(absl::Minutes(20), [this] {
    for (size_t node = 0; node < target_->nodes(); ++node) {
      target_->clients().Steer(target_->machine(node).spec().name, false);
    }
  });
}

void Faults::DrainNode() {
  v1::DrainNodeRequest request;
  request.set_name(Any().spec().name);
  request.set_mode(static_cast<v1::NodeDrain::Mode>(1 + dice_.Below(4)));
  if (request.mode() != v1::NodeDrain::NOW) {
    ToProto(dice_.Around(absl::Minutes(5)), request.mutable_deadline());
  }
  target_->clients().Drain(request);
}

void Faults::Stop() {
  actor_->dead = true;
  trace_->Add(scheduler_->now(), "faults stop");
  Weather& weather = target_->network().weather;
  weather.loss = weather.replay = 0;
  weather.latency = kCalmLatency;
  weather.up_clogged.assign(target_->nodes(), -absl::InfiniteDuration());
  weather.down_clogged.assign(target_->nodes(), -absl::InfiniteDuration());
  target_->server().disk = {};
  target_->StartServer();
  for (size_t node = 0; node < target_->nodes(); ++node) {
    Machine& machine = target_->machine(node);
    machine.disk().full = false;
    machine.disk().syncs_until_failure = 0;
    machine.PowerOn();
    machine.StartAgent();
    target_->clients().Steer(machine.spec().name, false);
  }
}

void Faults::Often(Fault kind, absl::Duration mean, std::function<void()> act) {
  if (options_.Has(kind)) Repeat(mean / pace_, std::move(act));
}

void Faults::Repeat(absl::Duration mean, std::function<void()> act) {
  scheduler_->After(dice_.Around(mean), actor_, [this, mean, act = std::move(act)]() mutable {
    act();
    Repeat(mean, std::move(act));
  });
}

void Faults::Later(absl::Duration delay, std::function<void()> act) {
  scheduler_->After(delay, actor_, std::move(act));
}

// ---- The network

void Faults::ChangeWeather() {
  Weather& weather = target_->network().weather;
  const auto bad = [&](Fault kind) { return options_.Has(kind) && dice_.Chance(0.3); };
  weather.loss = bad(Fault::kLoss) ? kLosses[dice_.Below(std::size(kLosses))] : 0;
  weather.replay = bad(Fault::kReplay) ? kReplays[dice_.Below(std::size(kReplays))] : 0;
  weather.latency = bad(Fault::kDelay) ? kDelays[dice_.Below(std::size(kDelays))] : kCalmLatency;
  trace_->Add(scheduler_->now(), "weather", static_cast<int64_t>(weather.loss * 1000),
              static_cast<int64_t>(weather.replay * 1000),
              absl::ToInt64Milliseconds(weather.latency));
}

void Faults::Clog(bool up, bool down, absl::Duration how_long, bool many) {
  Weather& weather = target_->network().weather;
  const double share = many ? dice_.Unit() : 0;
  const size_t first = dice_.Below(target_->nodes());
  for (size_t node = 0; node < target_->nodes(); ++node) {
    if (node != first && !dice_.Chance(share)) continue;
    trace_->Add(scheduler_->now(), "clogged", static_cast<int64_t>(node),
                (up ? 1 : 0) + (down ? 2 : 0), absl::ToInt64Seconds(how_long));
    const absl::Duration until = scheduler_->now() + how_long;
    if (up) weather.up_clogged[node] = std::max(weather.up_clogged[node], until);
    if (down) weather.down_clogged[node] = std::max(weather.down_clogged[node], until);
  }
}

void Faults::Partition() {
  const uint64_t way = dice_.Below(4);
  Clog(way != 1, way != 2, dice_.Around(absl::Minutes(2)), dice_.Chance(0.3));
}

// ---- Processes and machines

// A planned stop. Agents that can be reached hold a longer lease by then, and the downtime often
// exceeds the usual one. Or a pause that times out, or a crash.
void Faults::StopServer() {
  target_->server().GrantLongerLease();
  if (dice_.Chance(0.3)) return;
  Later(dice_.Around(absl::Seconds(2)), [this] {
    target_->server().Crash();
    target_->network().ServerDied(true);
    Later(dice_.Around(absl::Minutes(1)), [this] { target_->StartServer(); });
  });
}

void Faults::KillServer() {
  if (dice_.Chance(0.3)) return StopServer();
  const bool powered = dice_.Chance(0.7);
  target_->server().Crash();
  target_->network().ServerDied(powered);
  Later(dice_.Around(powered ? absl::Seconds(5) : absl::Minutes(2)),
        [this] { target_->StartServer(); });
}

// A backup, some time of normal operation, and then the documented steps after a loss.
void Faults::GoBack() {
  const bool fresh = dice_.Chance(0.3);
  if (target_->server().up() && !fresh) target_->Backup();
  Later(dice_.Around(absl::Minutes(5)), [this, fresh] {
    if (!fresh && !target_->server().has_backup()) return;
    target_->server().Crash();
    target_->network().ServerDied(true);
    target_->RestoreServer(fresh);
    Later(dice_.Around(absl::Seconds(20)), [this] { target_->StartServer(); });
  });
}

void Faults::KillAgent() {
  Machine& machine = Any();
  machine.KillAgent();
  Later(dice_.Around(absl::Seconds(10)), [&machine] { machine.StartAgent(); });
}

void Faults::PowerOff() {
  Machine& machine = Any();
  machine.PowerOff();
  if (dice_.Chance(0.2)) machine.WipeDisk();
  Later(dice_.Around(dice_.Chance(0.2) ? absl::Hours(1) : absl::Minutes(1)),
        [&machine] { machine.PowerOn(); });
}

void Faults::Pause() {
  const absl::Duration how_long = std::min(dice_.Around(absl::Seconds(20)), absl::Minutes(5));
  switch (dice_.Below(3)) {
    case 0:
      return target_->server().Pause(how_long);
    case 1:
      return Any().PauseAgent(how_long);
    default:
      return Any().Freeze(how_long);
  }
}

// Rarely far ahead: then every timer is due at once. A little back: timers fire later. Never a
// whole day, after which the server may forget the ids of requests that clients still retry.
void Faults::JumpClock() {
  const absl::Duration by = dice_.Chance(0.1)
                                ? std::min(dice_.Around(absl::Hours(12)), absl::Hours(20))
                            : dice_.Chance(0.5) ? dice_.Around(absl::Seconds(30))
                                                : -dice_.Around(absl::Seconds(30));
  trace_->Add(scheduler_->now(), "clock jumps", absl::ToInt64Seconds(by));
  if (dice_.Chance(0.5)) return target_->JumpServerClock(by);
  Any().JumpClock(by);
}

void Faults::BreakDisk() {
  const absl::Duration how_long = dice_.Around(absl::Seconds(20));
  if (dice_.Chance(0.5)) {
    Machine& machine = Any();
    if (dice_.Chance(0.5)) {
      machine.disk().syncs_until_failure = static_cast<int>(dice_.Between(1, 5));
      return;
    }
    machine.disk().full = true;
    return Later(how_long, [&machine] { machine.disk().full = false; });
  }
  ServerDisk& disk = target_->server().disk;
  disk.full = dice_.Chance(0.5);
  disk.latency = dice_.Around(absl::Milliseconds(300));
  Later(how_long, [&disk] { disk = {}; });
}

// ---- Lies

void Faults::Lie() {
  const size_t node = dice_.Below(target_->nodes());
  Machine& machine = target_->machine(node);
  if (machine.agent() == nullptr || !machine.agent()->registered()) return;
  if (dice_.Chance(0.1)) return LieAboutDevices(machine);
  v1::AgentMessage message;
  message.set_epoch(machine.agent()->epoch());
  *message.mutable_report() = FalseReport(node);
  target_->network().Forge(node, std::move(message));
}

// Reports of attempts that were never assigned or that run elsewhere, and repeats of true reports.
v1::TaskReport Faults::FalseReport(size_t node) {
  v1::TaskReport report;
  report.set_report_id(kFalseReportIds + dice_.Below(1000));
  const std::map<TaskId, size_t> running = target_->safety().running();
  TaskId id{1 + dice_.Below(1 + target_->safety().jobs().size()),
            static_cast<uint32_t>(dice_.Below(4)), 100, target_->server().incarnation()};
  bool here = false;
  if (!running.empty() && dice_.Chance(0.8)) {
    auto chosen = running.begin();
    std::advance(chosen, dice_.Below(running.size()));
    id = chosen->first;
    here = chosen->second == node;
    if (here && dice_.Chance(0.5)) {
      ++id.attempt;
      here = false;
    }
  }
  *report.mutable_key() = ToKey(id);
  constexpr v1::TaskReport::State kStates[] = {v1::TaskReport::PREPARED, v1::TaskReport::REFUSED,
                                               v1::TaskReport::RUNNING, v1::TaskReport::EXITED};
  report.set_state(here ? v1::TaskReport::RUNNING : kStates[dice_.Below(std::size(kStates))]);
  if (report.state() == v1::TaskReport::PREPARED) report.set_reserved_port(20000);
  return report;
}

void Faults::LieAboutDevices(Machine& machine) {
  v1::NodeInventory less = machine.spec().inventory;
  if (less.devices_size() > 0) less.mutable_devices()->RemoveLast();
  less.set_cpu_millis(less.cpu_millis() / 2);
  machine.SayInventory(std::move(less));
  Later(dice_.Around(absl::Minutes(5)),
        [&machine] { machine.SayInventory(machine.spec().inventory); });
}

}  // namespace berth::simulation
