// The namespaces of a task: its processes (PID), and its mounts, in which /proc shows only these
// processes. Standard library only.
//
//   supervisor ---- init      PID 1 of the namespace: reaps orphans; its end kills all the rest
//              \--- command   also a child of the supervisor, which gets its exit status directly
//
// The init is a fork of the supervisor and keeps its user, so that the task's user can neither
// signal nor trace it. A command is never PID 1: the kernel would ignore signals that it does not
// handle.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_NAMESPACES_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_NAMESPACES_H_

#include <sys/types.h>

#include <cstdint>

#include "clients/agent/supervisor/spec.h"

namespace berth {

// While this object lives, processes forked by this process are in a new PID namespace. The first
// PIDs there follow `first_pid`, if the kernel supports that. The init is a child that the caller
// reaps.
class NewPidNamespace {
 public:
  explicit NewPidNamespace(int64_t first_pid);
  ~NewPidNamespace();
  NewPidNamespace(const NewPidNamespace&) = delete;
  NewPidNamespace& operator=(const NewPidNamespace&) = delete;

  int error() const { return error_; }  // an errno, 0 = it exists
  pid_t init() const { return init_; }  // 0 if it does not exist

 private:
  int own_ = -1;  // this process's own namespace
  int error_ = 0;
  pid_t init_ = 0;
};

// Whether a task without a container has a mount namespace.
bool HasOwnMounts(const SupervisorSpec& spec);

// Creates a mount namespace for this process, as described by `spec`: /tmp and /var/tmp, /dev/shm,
// and the /proc of this process's PID namespace. No-op if it needs none. Volumes follow (mounts.h).
// Later mounts of the machine are visible inside; mounts inside are not visible outside. Returns an
// errno.
int EnterMounts(const SupervisorSpec& spec);

// Joins the namespaces of `pid`, a child of `parent`, that the task of `spec` has. PID: processes
// forked from now on are in it. Returns an errno; ESRCH if it is no longer a child of `parent`.
int JoinNamespaces(const SupervisorSpec& spec, pid_t pid, pid_t parent);

// Joins the network namespace of `pid`, a child of `parent`, if that is another one than this
// process's. Returns an errno, as JoinNamespaces.
int JoinNetwork(pid_t pid, pid_t parent);

// Whether this process may create all of these namespaces and mounts; tried in a child. Returns an
// errno.
int TryNamespaces();

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_NAMESPACES_H_
