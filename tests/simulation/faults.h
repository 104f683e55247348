// What goes wrong, and when: each kind of fault has separate times and durations.
#ifndef BERTH_TESTS_SIMULATION_FAULTS_H_
#define BERTH_TESTS_SIMULATION_FAULTS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/simulation/clients.h"
#include "tests/simulation/machine.h"
#include "tests/simulation/network.h"
#include "tests/simulation/options.h"
#include "tests/simulation/safety.h"
#include "tests/simulation/server.h"

namespace berth::simulation {

class FaultTarget {
 public:
  virtual ~FaultTarget() = default;
  virtual Network& network() = 0;
  virtual Server& server() = 0;
  virtual size_t nodes() const = 0;
  virtual Machine& machine(size_t node) = 0;
  virtual Clients& clients() = 0;
  virtual const Safety& safety() const = 0;
  virtual void JumpServerClock(absl::Duration by) = 0;
  virtual void StartServer() = 0;
  virtual void Backup() = 0;
  // While the server does not run: restores the backup, or starts a new store.
  virtual void RestoreServer(bool fresh) = 0;
};

class Faults {
 public:
  Faults(const Options& options, FaultTarget* target, Scheduler* scheduler, Trace* trace);

  void Begin();
  // Ends all faults that can be ended at once, and starts no new ones.
  void Stop();

 private:
  // Calls `act` about every `mean` until Stop, if the kind is enabled.
  void Often(Fault kind, absl::Duration mean, std::function<void()> act);
  void Repeat(absl::Duration mean, std::function<void()> act);
  // Calls `act` later, unless Stop comes first.
  void Later(absl::Duration delay, std::function<void()> act);

  void ChangeWeather();
  void Clog(bool up, bool down, absl::Duration how_long, bool many);
  void Partition();
  void KillServer();
  void GoBack();
  void StopServer();
  void KillAgent();
  void PowerOff();
  void Pause();
  void DrainNode();
  void JumpClock();
  void BreakDisk();
  void Lie();
  void LieAboutDevices(Machine& machine);
  v1::TaskReport FalseReport(size_t node);
  Machine& Any() { return target_->machine(dice_.Below(target_->nodes())); }

  const Options options_;
  FaultTarget* const target_;
  Scheduler* const scheduler_;
  Trace* const trace_;
  Dice dice_;
  double pace_;  // frequency of faults: some seeds are rough, others calm
  const ActorPtr actor_ = std::make_shared<Actor>();
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_FAULTS_H_
