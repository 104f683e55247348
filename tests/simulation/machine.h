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

// What all machines share.
struct Surroundings {
  Scheduler* scheduler = nullptr;
  Trace* trace = nullptr;
  Network* network = nullptr;
  Observer* observer = nullptr;
  absl::Time start;                              // the day's time when the simulation begins
  std::function<void(const std::string&)> fail;  // the simulation ends: this must not be
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
  // Off, with an empty disk.
  Machine(MachineSpec spec, const Surroundings& around);

  void PowerOn();   // the agent starts some seconds later
  void PowerOff();  // at once, without a word
  bool powered() const { return powered_; }
  // Only without power.
  void WipeDisk();

  void StartAgent();
  void KillAgent();
  bool has_agent() const { return agent_ != nullptr; }
  const Agent* agent() const { return agent_.get(); }
  // The agent's process alone, or everything.
  void PauseAgent(absl::Duration how_long);
  void Freeze(absl::Duration how_long);
  void JumpClock(absl::Duration by) { wall_offset_ += by; }
  // What the agent says it has from now on, by a new registration.
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
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_MACHINE_H_
