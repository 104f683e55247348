// The only events of nodes that the safety model receives.
#ifndef BERTH_TESTS_SIMULATION_OBSERVER_H_
#define BERTH_TESTS_SIMULATION_OBSERVER_H_

#include <cstddef>

#include "berth/v1/agent.pb.h"
#include "clients/agent/task_id.h"

namespace berth::simulation {

class Observer {
 public:
  virtual ~Observer() = default;
  // The node has prepared the task.
  virtual void OnPrepared(size_t node, const TaskId& id) = 0;
  // A process of the task starts or ends; `succeeded`: it exited with status 0.
  virtual void OnStarted(size_t node, const TaskId& id, const v1::TaskLaunch& launch,
                         const v1::Start& start) = 0;
  virtual void OnEnded(size_t node, const TaskId& id, bool succeeded) = 0;
  // The processes of a task that runs are frozen, and keep their devices or not; or go on.
  virtual void OnTaskFrozen(size_t node, const TaskId& id, bool frozen, bool lends) = 0;
  // The machine freezes with all its processes, or resumes.
  virtual void OnFrozen(size_t node, bool frozen) = 0;
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_OBSERVER_H_
