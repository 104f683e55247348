// The namespaces of a task: its own processes (PID), and files (mounts) in which /proc shows these
// only. Standard library only.
//
//   supervisor ---- init      PID 1 of the namespace: reaps orphans, and its end kills all the rest
//              \--- command   also a child of the supervisor, which sees its exit status itself
//
// The init is a fork of the supervisor and stays who that is, so that the task's user can neither
// signal nor trace it. A command is never PID 1: the kernel would ignore signals to it that it does
// not handle.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_NAMESPACES_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_NAMESPACES_H_

#include <sys/types.h>

#include <cstdint>

#include "clients/agent/supervisor/spec.h"

namespace berth {

// As long as it lives, what this process forks is in a new PID namespace. The first PIDs there
// follow `first_pid`, if the kernel can do that. The init is a child that the caller reaps.
class NewPidNamespace {
 public:
  explicit NewPidNamespace(int64_t first_pid);
  ~NewPidNamespace();
  NewPidNamespace(const NewPidNamespace&) = delete;
  NewPidNamespace& operator=(const NewPidNamespace&) = delete;

  int error() const { return error_; }  // an errno, 0 = it is there

 private:
  int own_ = -1;  // this process's own namespace
  int error_ = 0;
};

// A mount namespace for this process, with what `spec` says: /tmp and /var/tmp, /dev/shm, and the
// /proc of this process's PID namespace. Nothing if it says none. What the machine mounts later is
// seen; what is mounted here is seen by nobody else. An errno.
int EnterMounts(const SupervisorSpec& spec);

// Joins the namespaces of `pid`, a child of `parent`, as far as the task of `spec` has its own.
// PID: what is forked from now on is in it. An errno; ESRCH if it is not a child of `parent` any
// more.
int JoinNamespaces(const SupervisorSpec& spec, pid_t pid, pid_t parent);

// Whether this process may make all of these namespaces and mounts; tried in a child. An errno.
int TryNamespaces();

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_NAMESPACES_H_
