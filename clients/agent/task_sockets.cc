#include "clients/agent/task_sockets.h"

#include <fcntl.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/agent/disk.h"
#include "clients/agent/task_proxy.h"
#include "support/log.h"
#include "support/task_call.h"

namespace berth {
namespace {

constexpr int kBacklog = 128;
constexpr int kAcceptedTogether = 32;
constexpr int kReadyTogether = 64;
constexpr int kMostStreams = 32;                       // of one connection
constexpr int kMostRequestBytes = 256 << 10;           // an Exec message has at most 64 KiB of data
constexpr size_t kMostBufferBytes = size_t{64} << 20;  // of all tasks
constexpr absl::Duration kNoDescriptors = absl::Milliseconds(200);

// Nobody can connect before listen, so nobody does while the file has other permissions.
absl::StatusOr<int> ListenForUser(const std::string& path, uid_t user) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return ErrnoStatus(ENAMETOOLONG, path);
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return ErrnoStatus(errno, "socket");
  unlink(path.c_str());  // of an earlier agent
  const bool own = user == geteuid();
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      chmod(path.c_str(), 0600) == 0 &&
      (own || lchown(path.c_str(), user, static_cast<gid_t>(-1)) == 0) &&
      listen(fd, kBacklog) == 0) {
    return fd;
  }
  absl::Status status = ErrnoStatus(errno, absl::StrCat("listen at ", path));
  close(fd);
  return status;
}

// Each takes two descriptors, and the agent needs others for its work.
size_t MostConnections() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMostTaskConnections;
  return std::min<size_t>(kMostSocketConnections, limit.rlim_cur / 8);
}

bool IsOfUser(int fd, uid_t user) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == user;
}

bool IsOutOfDescriptors(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

// The socket of one task. gRPC owns the connections; a second descriptor of each shows when it is
// over. The server is made for the first one, because most tasks never call.
struct TaskSockets::Door {
  TaskId id;
  std::string path;
  uid_t user = 0;
  int listen_fd = -1;
  bool warned = false;  // of a connection that was refused
  std::set<int> connections;
  std::unique_ptr<TaskProxy> proxy;
  std::unique_ptr<grpc::Server> server;

  // Ends all calls, and waits until gRPC has released them.
  ~Door() {
    if (listen_fd >= 0) close(listen_fd);
    if (server != nullptr) server->Shutdown(std::chrono::system_clock::now());
    for (const int fd : connections) close(fd);
  }
};

TaskSockets::TaskSockets(std::vector<std::shared_ptr<grpc::Channel>> servers)
    : servers_(std::move(servers)), most_connections_(MostConnections()), memory_("tasks") {
  memory_.Resize(kMostBufferBytes);
}

absl::StatusOr<std::unique_ptr<TaskSockets>> TaskSockets::Create(
    std::vector<std::shared_ptr<grpc::Channel>> servers) {
  std::unique_ptr<TaskSockets> sockets(new TaskSockets(std::move(servers)));
  sockets->epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  sockets->wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (sockets->epoll_fd_ < 0 || sockets->wake_fd_ < 0) return ErrnoStatus(errno, "epoll");
  sockets->Watch(sockets->wake_fd_, EPOLLIN);
  sockets->thread_ = std::thread([raw = sockets.get()] { raw->Run(); });
  return sockets;
}

TaskSockets::~TaskSockets() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  Wake();
  if (thread_.joinable()) thread_.join();
  std::map<TaskId, std::unique_ptr<Door>> doors;
  {
    absl::MutexLock lock(&mutex_);
    doors.swap(doors_);
  }
  doors.clear();  // without the lock: calls may ask for their credential
  for (const int fd : {epoll_fd_, wake_fd_}) {
    if (fd >= 0) close(fd);
  }
}

void TaskSockets::Wake() const {
  const uint64_t one = 1;
  if (write(wake_fd_, &one, sizeof one) < 0) return;  // full: it wakes up anyway
}

void TaskSockets::Watch(int fd, int events) const {
  epoll_event event{};
  event.events = static_cast<uint32_t>(events);
  event.data.fd = fd;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
}

void TaskSockets::Forget(int fd) const { epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr); }

void TaskSockets::SetSession(std::optional<AgentSession> session) {
  absl::MutexLock lock(&mutex_);
  session_ = std::move(session);
}

absl::StatusOr<TaskProxy::Credential> TaskSockets::CredentialOf(const TaskId& id) const {
  absl::MutexLock lock(&mutex_);
  if (!session_.has_value() || session_->incarnation != id.incarnation) {
    return absl::UnavailableError("the agent of this node is not connected to berthd");
  }
  if (session_->key.empty()) {
    return absl::UnimplementedError("berthd is of a version that takes no calls of tasks");
  }
  const std::string text = EncodeTaskCall({.job_uid = id.job_uid,
                                           .task = id.task,
                                           .attempt = id.attempt,
                                           .node_id = session_->node_id,
                                           .epoch = session_->epoch,
                                           .key = session_->key,
                                           .node = session_->node});
  return TaskProxy::Credential{.text = text, .server = session_->server};
}

absl::Status TaskSockets::Open(const TaskId& id, const std::string& path, uid_t user) {
  const absl::StatusOr<int> fd = ListenForUser(path, user);
  if (!fd.ok()) return fd.status();
  auto door = std::make_unique<Door>();
  door->id = id;
  door->path = path;
  door->user = user;
  door->listen_fd = *fd;
  absl::MutexLock lock(&mutex_);
  listening_[*fd] = id;
  doors_[id] = std::move(door);
  Watch(*fd, EPOLLIN);
  return absl::OkStatus();
}

void TaskSockets::Close(const TaskId& id) {
  {
    absl::MutexLock lock(&mutex_);
    const auto found = doors_.find(id);
    if (found == doors_.end()) return;
    unlink(found->second->path.c_str());
    listening_.erase(found->second->listen_fd);
    Forget(found->second->listen_fd);
    for (const int fd : found->second->connections) {
      connections_.erase(fd);
      Forget(fd);
    }
    closing_.push_back(std::move(found->second));
    doors_.erase(found);
  }
  Wake();
}

void TaskSockets::Run() {
  for (;;) {
    epoll_event events[kReadyTogether];
    const int count = epoll_wait(epoll_fd_, events, kReadyTogether, -1);
    std::vector<int> ready;
    for (int i = 0; i < count; ++i) ready.push_back(events[i].data.fd);
    Handle(ready).clear();  // ends the calls of tasks that have ended, without the lock
    bool pause = false;
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      pause = std::exchange(out_of_descriptors_, false);
    }
    if (pause) absl::SleepFor(kNoDescriptors);  // the socket stays readable
  }
}

std::vector<std::unique_ptr<TaskSockets::Door>> TaskSockets::Handle(const std::vector<int>& ready) {
  absl::MutexLock lock(&mutex_);
  for (const int fd : ready) {
    uint64_t count;
    if (fd == wake_fd_ && read(fd, &count, sizeof count) < 0) continue;
    if (const auto found = listening_.find(fd); found != listening_.end()) {
      Accept(*doors_.at(found->second));
    } else if (const auto over = connections_.find(fd); over != connections_.end()) {
      doors_.at(over->second)->connections.erase(fd);
      connections_.erase(over);
      Forget(fd);
      close(fd);
    }
  }
  return std::exchange(closing_, {});
}

void TaskSockets::Accept(Door& door) {
  for (int i = 0; i < kAcceptedTogether; ++i) {
    const int fd = accept4(door.listen_fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      out_of_descriptors_ = IsOutOfDescriptors(errno);
      return;
    }
    const bool full =
        door.connections.size() >= kMostTaskConnections || connections_.size() >= most_connections_;
    if (full || !IsOfUser(fd, door.user)) {
      if (!std::exchange(door.warned, true))
        LogWarn("a connection to a task's socket is refused",
                {{"task", ToString(door.id)},
                 {"reason", full ? "too many connections" : "a process of another user"}});
      close(fd);
      continue;
    }
    Serve(door, fd);
  }
}

void TaskSockets::Serve(Door& door, int connection) {
  const int watched = fcntl(connection, F_DUPFD_CLOEXEC, 0);
  if (watched < 0) {
    close(connection);
    return;
  }
  if (door.server == nullptr) {
    const auto flood = [this, id = door.id] {
      LogWarn("a task floods its socket, which is closed", {{"task", ToString(id)}});
      Close(id);
    };
    door.proxy = std::make_unique<TaskProxy>(
        servers_, [this, id = door.id] { return CredentialOf(id); }, flood);
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(door.proxy.get());
    builder.SetMaxReceiveMessageSize(kMostRequestBytes);
    builder.SetResourceQuota(memory_);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostStreams);
    door.server = builder.BuildAndStart();
  }
  door.connections.insert(watched);
  connections_[watched] = door.id;
  Watch(watched, 0);  // EPOLLHUP: over on both sides
  grpc::AddInsecureChannelFromFd(door.server.get(), connection);
}

}  // namespace berth
