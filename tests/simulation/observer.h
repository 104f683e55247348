// What the model of safety gets to know of the nodes, and nothing else of them.
#ifndef BERTH_TESTS_SIMULATION_OBSERVER_H_
#define BERTH_TESTS_SIMULATION_OBSERVER_H_

#include <cstddef>

#include "berth/v1/agent.pb.h"
#include "clients/agent/task_id.h"

namespace berth::simulation {

class Observer {
 public:
  virtual ~Observer() = default;
  // The node has made ready for the task.
  virtual void OnPrepared(size_t node, const TaskId& id) = 0;
  // A process of the task begins to run, and is gone; `succeeded`: of itself, with status 0.
  virtual void OnStarted(size_t node, const TaskId& id, const v1::TaskLaunch& launch) = 0;
  virtual void OnEnded(size_t node, const TaskId& id, bool succeeded) = 0;
  // The machine stands still, processes and all, or goes on.
  virtual void OnFrozen(size_t node, bool frozen) = 0;
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_OBSERVER_H_
