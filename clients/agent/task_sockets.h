// The sockets of tasks: a Unix socket for each task that runs, where it may ask berthd about its
// own job and run commands in it (docs/developers/access.md). The agent forwards the calls.
//
// Who may connect: processes of the task's user that see the socket. Files and the kernel's word
// for the user (SO_PEERCRED) say so. At most kMostTaskConnections for each task, and for all
// kMostSocketConnections, or an eighth of the descriptors that the agent may have.
#ifndef BERTH_CLIENTS_AGENT_TASK_SOCKETS_H_
#define BERTH_CLIENTS_AGENT_TASK_SOCKETS_H_

#include <grpcpp/channel.h>
#include <grpcpp/resource_quota.h>
#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "clients/agent/task_id.h"
#include "clients/agent/task_proxy.h"

namespace berth {

inline constexpr size_t kMostTaskConnections = 256;
inline constexpr size_t kMostSocketConnections = 2048;

// The agent's registration, which vouches for its tasks.
struct AgentSession {
  std::string node;
  uint32_t node_id = 0;
  uint64_t epoch = 0;
  uint64_t incarnation = 0;  // tasks of another one are being ended
  std::string key;           // Welcome.task_key; empty: a server that takes no calls of tasks
  size_t server = 0;         // which of the servers registered the agent
};

// Thread-safe. A thread of its own accepts connections.
class TaskSockets {
 public:
  // `servers`: channels to berthd, not those of the agent's own stream. INTERNAL: out of
  // descriptors.
  static absl::StatusOr<std::unique_ptr<TaskSockets>> Create(
      std::vector<std::shared_ptr<grpc::Channel>> servers);
  // Ends all calls and leaves the files of the sockets: tasks go on, and the next agent replaces
  // them.
  ~TaskSockets();

  // Nothing: there is no session now.
  void SetSession(std::optional<AgentSession> session) ABSL_LOCKS_EXCLUDED(mutex_);
  // Listens at `path`, whose directory only the agent's user can change; replaces a file there.
  absl::Status Open(const TaskId& id, const std::string& path, uid_t user)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The task has ended: removes the socket and ends its calls. Does not wait for them. Without a
  // socket nothing happens.
  void Close(const TaskId& id) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Door;

  explicit TaskSockets(std::vector<std::shared_ptr<grpc::Channel>> servers);
  void Run();
  // Lets the thread look at what has changed.
  void Wake() const;
  absl::StatusOr<TaskProxy::Credential> CredentialOf(const TaskId& id) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Accept(Door& door) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Serve(Door& door, int connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Watch(int fd, int events) const;
  // Before it is closed: gRPC's descriptor would keep it watched.
  void Forget(int fd) const;
  // What became ready; the doors that are to be closed.
  std::vector<std::unique_ptr<Door>> Handle(const std::vector<int>& ready)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const std::vector<std::shared_ptr<grpc::Channel>> servers_;
  const size_t most_connections_;
  grpc::ResourceQuota memory_;
  int epoll_fd_ = -1;
  int wake_fd_ = -1;
  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<AgentSession> session_ ABSL_GUARDED_BY(mutex_);
  std::map<TaskId, std::unique_ptr<Door>> doors_ ABSL_GUARDED_BY(mutex_);
  std::map<int, TaskId> listening_ ABSL_GUARDED_BY(mutex_);    // by descriptor
  std::map<int, TaskId> connections_ ABSL_GUARDED_BY(mutex_);  // by our descriptor of it
  std::vector<std::unique_ptr<Door>> closing_ ABSL_GUARDED_BY(mutex_);
  bool out_of_descriptors_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_TASK_SOCKETS_H_
