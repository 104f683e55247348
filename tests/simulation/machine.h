// A node's machine: power, clocks, disk, processes, and at most one agent.
#ifndef BERTH_TESTS_SIMULATION_MACHINE_H_
#define BERTH_TESTS_SIMULATION_MACHINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tests/simulation/agent.h"
#include "tests/simulation/disk.h"

namespace berth::simulation {

// Shared by all machines.
struct Surroundings {
  Scheduler* scheduler = nullptr;
  Trace* trace = nullptr;
  Network* network = nullptr;
  Observer* observer = nullptr;
  absl::Time start;                              // wall time at the start of the simulation
  std::function<void(const std::string&)> fail;  // ends the simulation with this failure
};

struct MachineSpec {
  size_t index = 0;
  std::string name;
  v1::NodeInventory inventory;
  absl::Duration keep_ended;
  double refusals = 0;
  uint64_t seed = 0;
};

class Machine {
 public:
  // Powered off, with an empty disk.
  Machine(MachineSpec spec, const Surroundings& around);

  void PowerOn();   // the agent starts some seconds later
  void PowerOff();  // immediately, without notice to anyone
  bool powered() const { return powered_; }
  // Requires that the power is off.
  void WipeDisk();

  void StartAgent();
  void KillAgent();
  bool has_agent() const { return agent_ != nullptr; }
  const Agent* agent() const { return agent_.get(); }
  // Pauses only the agent's process, or the whole machine.
  void PauseAgent(absl::Duration how_long);
  void Freeze(absl::Duration how_long);
  // See Processes::FailLater.
  void FailTask(const TaskId& id, absl::Duration delay) { processes_.FailLater(id, delay); }
  bool Hangs(const TaskId& id) const { return processes_.Hangs(id); }
  bool Runs(const TaskId& id) const {
    return processes_.Look(id).phase == Processes::Phase::kRunning;
  }
  // When it was last frozen; the past: never.
  absl::Duration thawed() const { return thawed_; }
  void JumpClock(absl::Duration by) { wall_offset_ += by; }
  // Changes the inventory that the agent reports, which registers it again.
  void SayInventory(v1::NodeInventory inventory);

  SimDisk& disk() { return disk_; }
  const MachineSpec& spec() const { return spec_; }
  size_t processes() const { return processes_.alive(); }

 private:
  absl::Duration Local() const;
  Instant Now() const { return {Local(), around_.start + around_.scheduler->now() + wall_offset_}; }
  void Note(absl::string_view what);

  const MachineSpec spec_;
  const Surroundings around_;
  Dice dice_;
  SimDisk disk_;
  Processes processes_;
  std::unique_ptr<Agent> agent_;
  bool powered_ = false;
  int boots_ = 0, agents_ = 0, disks_ = 0;
  absl::Duration booted_;
  absl::Duration wall_offset_;
  absl::Duration thawed_ = -absl::InfiniteDuration();
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_MACHINE_H_
