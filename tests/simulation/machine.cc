#include "tests/simulation/machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace berth::simulation {
namespace {

constexpr absl::Duration kShortestBoot = absl::Seconds(5), kLongestBoot = absl::Seconds(60);
constexpr absl::Duration kSteadyAtBoot = absl::Seconds(3);
constexpr absl::Duration kTryAgain = absl::Seconds(5);  // restart by systemd after a disk failure

}  // namespace

Machine::Machine(MachineSpec spec, const Surroundings& around)
    : spec_(std::move(spec)),
      around_(around),
      dice_(spec_.seed, 0x6d616368 + spec_.index),
      processes_(
          around.scheduler, around.observer, spec_.index, spec_.seed, [this] { return Local(); },
          [this](const TaskId& id) {
            if (agent_ == nullptr) return;
            around_.scheduler->After(absl::ZeroDuration(), agent_->actor(),
                                     [this, id] { agent_->OnProcess(id); });
          }) {}

absl::Duration Machine::Local() const { return around_.scheduler->now() - booted_ + kSteadyAtBoot; }

void Machine::Note(absl::string_view what) {
  around_.trace->Add(around_.scheduler->now(), what, static_cast<int64_t>(spec_.index));
}

void Machine::PowerOn() {
  if (powered_) return;
  powered_ = true;
  ++boots_;
  booted_ = around_.scheduler->now();
  Note("power on");
  around_.scheduler->After(dice_.Between(kShortestBoot, kLongestBoot), processes_.machine,
                           [this] { StartAgent(); });
}

void Machine::PowerOff() {
  if (!powered_) return;
  powered_ = false;
  Note("power off");
  if (agent_ != nullptr) agent_->Die(/*powered=*/false);
  agent_ = nullptr;
  processes_.PowerCut();
  disk_.PowerCut(dice_);
  around_.observer->OnFrozen(spec_.index, false);
}

void Machine::WipeDisk() {
  Note("new disk");
  disk_.Wipe();
  ++disks_;
}

void Machine::StartAgent() {
  if (!powered_ || agent_ != nullptr) return;
  Note("agent starts");
  absl::StatusOr<std::unique_ptr<Agent>> agent =
      Agent::Create({.node = spec_.index,
                     .name = spec_.name,
                     .boot_id = absl::StrCat(spec_.name, "-boot-", boots_),
                     .new_agent_id = absl::StrCat(spec_.name, "-agent-", disks_),
                     .inventory = spec_.inventory,
                     .keep_ended = spec_.keep_ended,
                     .refusals = spec_.refusals,
                     .seed = spec_.seed + static_cast<uint64_t>(++agents_) * 1000,
                     .now = [this] { return Now(); },
                     .on_fatal =
                         [this] {
                           Machine* machine = this;  // this lambda is destroyed with its agent
                           machine->KillAgent();
                           machine->around_.scheduler->After(kTryAgain, machine->processes_.machine,
                                                             [machine] { machine->StartAgent(); });
                         }},
                    around_.scheduler, around_.network, &disk_, &processes_, around_.observer);
  if (agent.ok()) {
    agent_ = *std::move(agent);
    return agent_->Begin();
  }
  if (absl::IsDataLoss(agent.status())) {
    return around_.fail(
        absl::StrCat("the journal of ", spec_.name,
                     " is damaged by a permitted disk fault: ", agent.status().message()));
  }
  around_.scheduler->After(kTryAgain, processes_.machine, [this] { StartAgent(); });
}

void Machine::KillAgent() {
  if (agent_ == nullptr) return;
  Note("agent killed");
  agent_->Die(/*powered=*/true);
  agent_ = nullptr;
}

void Machine::PauseAgent(absl::Duration how_long) {
  if (agent_ == nullptr) return;
  Note("agent paused");
  Actor& agent = *agent_->actor();
  agent.paused_until = std::max(agent.paused_until, around_.scheduler->now() + how_long);
}

void Machine::Freeze(absl::Duration how_long) {
  if (!powered_) return;
  Note("frozen");
  Actor& machine = *processes_.machine;
  const absl::Duration until = std::max(machine.paused_until, around_.scheduler->now() + how_long);
  machine.paused_until = until;
  thawed_ = until;
  PauseAgent(how_long);
  around_.observer->OnFrozen(spec_.index, true);
  around_.scheduler->At(until, processes_.machine,
                        [this] { around_.observer->OnFrozen(spec_.index, false); });
}

void Machine::SayInventory(v1::NodeInventory inventory) {
  if (agent_ == nullptr || agent_->actor()->paused_until > around_.scheduler->now()) return;
  Note("says inventory");
  agent_->SetInventory(std::move(inventory));
}

}  // namespace berth::simulation
