// Rendezvous ports of the tasks on this node: unique among them, and free when assigned.
#ifndef BERTH_CLIENTS_AGENT_PORT_ALLOCATOR_H_
#define BERTH_CLIENTS_AGENT_PORT_ALLOCATOR_H_

#include <map>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "clients/agent/task_id.h"

namespace berth {

// Whether a TCP socket can be bound to `port` on every address now.
bool IsPortBindable(int port);

// Not thread-safe.
class PortAllocator {
 public:
  using Probe = absl::AnyInvocable<bool(int port)>;

  // Ports first..last. Ports are tried in turn, so that a released port rests for a while.
  PortAllocator(int first, int last, Probe probe = IsPortBindable);

  // The task's port; the same one if it already has one. `preferred` if that is free; 0 = any.
  // RESOURCE_EXHAUSTED if none is free.
  absl::StatusOr<int> Reserve(const TaskId& id, int preferred = 0);
  // Takes over a port that an earlier agent process assigned. Not probed: the task may have bound
  // it.
  void Adopt(const TaskId& id, int port);
  void Release(const TaskId& id);

 private:
  const int first_;
  const int last_;
  Probe probe_;
  int next_;
  std::map<TaskId, int> by_task_;
  std::map<int, TaskId> by_port_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_PORT_ALLOCATOR_H_
