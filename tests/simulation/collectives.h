// Programs that talk to each other, as gloo and NCCL do: when a member ends without success, the
// others notice and exit with 1 within seconds.
//
// They use the network of the data, which no fault of the simulation touches: members notice
// whatever links to the server are cut. A member on a machine without power has ended. One on a
// frozen machine has not: the others would wait for it, and so nothing happens here until it
// resumes and is stopped. A member that has succeeded is missed by nobody.
#ifndef BERTH_TESTS_SIMULATION_COLLECTIVES_H_
#define BERTH_TESTS_SIMULATION_COLLECTIVES_H_

#include <functional>
#include <map>
#include <string>

#include "tests/simulation/dice.h"
#include "tests/simulation/observer.h"

namespace berth::simulation {

// In the environment of a task: 1 if its processes are members of a collective.
inline constexpr char kCollectiveVariable[] = "SIM_COLLECTIVE";

// Tells `next` everything.
class Collectives final : public Observer {
 public:
  // `fail(node, id, delay)`: the task's process exits with 1 after the delay, unless it has ended.
  Collectives(Observer* next, uint64_t seed,
              std::function<void(size_t, const TaskId&, absl::Duration)> fail)
      : next_(next), dice_(seed, 0x636f6c6c), fail_(std::move(fail)) {}

  void OnPrepared(size_t node, const TaskId& id) override { next_->OnPrepared(node, id); }
  void OnStarted(size_t node, const TaskId& id, const v1::TaskLaunch& launch,
                 const v1::Start& start) override;
  void OnEnded(size_t node, const TaskId& id, bool succeeded) override;
  void OnTaskFrozen(size_t node, const TaskId& id, bool frozen, bool lends) override {
    next_->OnTaskFrozen(node, id, frozen, lends);
  }
  void OnFrozen(size_t node, bool frozen) override { next_->OnFrozen(node, frozen); }

 private:
  // Those of one job that met at one endpoint form a collective.
  struct Member {
    size_t node = 0;
    std::string endpoint;
  };

  Observer* const next_;
  Dice dice_;
  const std::function<void(size_t, const TaskId&, absl::Duration)> fail_;
  std::map<TaskId, Member> members_;
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_COLLECTIVES_H_
