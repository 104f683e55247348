// A berthd with real TLS, access rules, and a client for each user and node that a test names.
//
//   queues: team > team-a, other; jobs: train (owner "owner", in team-a), theirs ("stranger",
//   other)
#ifndef BERTH_TESTS_UNIT_SERVER_SERVICE_ACCESS_WORLD_H_
#define BERTH_TESTS_UNIT_SERVER_SERVICE_ACCESS_WORLD_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "berth/v1/access.grpc.pb.h"
#include "berth/v1/agent.grpc.pb.h"
#include "berth/v1/audit.grpc.pb.h"
#include "berth/v1/history.grpc.pb.h"
#include "server/app.h"
#include "storage/memory/memory_store.h"
#include "support/pki/authority.h"
#include "support/task_call.h"
#include "tests/unit/server/service_world.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth::testing {

// The services, as one caller.
struct Door {
  explicit Door(const std::shared_ptr<grpc::Channel>& channel);
  std::unique_ptr<v1::JobService::Stub> jobs;
  std::unique_ptr<v1::QueueService::Stub> queues;
  std::unique_ptr<v1::NodeService::Stub> nodes;
  std::unique_ptr<v1::HyperNodeService::Stub> hyper_nodes;
  std::unique_ptr<v1::WatchService::Stub> watch;
  std::unique_ptr<v1::ClusterService::Stub> cluster;
  std::unique_ptr<v1::ExplainService::Stub> explain;
  std::unique_ptr<v1::AccessService::Stub> access;
  std::unique_ptr<v1::AuditService::Stub> audit;
  std::unique_ptr<v1::HistoryService::Stub> history;
  std::unique_ptr<v1::PriorityClassService::Stub> priority_classes;
  std::unique_ptr<v1::AgentService::Stub> agents;
};

class AccessWorld {
 public:
  // With `enforced` false the rules were never written.
  explicit AccessWorld(bool enforced = true);
  ~AccessWorld();

  static constexpr char kAdministrator[] = "root";  // by the configuration

  std::unique_ptr<Door> User(const std::string& name, const std::vector<std::string>& groups = {},
                             absl::Duration lifetime = absl::Hours(1));
  std::unique_ptr<Door> Node(const std::string& name, absl::Duration lifetime = absl::Hours(1));
  // Each call of these has the text in its metadata, as the name of a task.
  std::unique_ptr<Door> NodeForTask(const std::string& name, const std::string& task);
  std::unique_ptr<Door> UserForTask(const std::string& name, const std::string& task);
  // Of the authority that may only make users.
  std::unique_ptr<Door> OfUsersAuthority(const SpiffeId& id);
  // With a certificate that identifies nobody here.
  std::unique_ptr<Door> Nobody();
  Door& root() { return *root_; }

  absl::Status Change(Door& by, const v1::ChangeAccessRequest& change);
  // As root. `queue`: "" for the cluster.
  void Grant(const std::string& user, const std::string& role, const std::string& queue);
  void Revoke(const std::string& user, const std::string& role, const std::string& queue);
  void Submit(Door& by, const std::string& name, const std::string& queue);
  uint64_t UidOf(const std::string& job);

 private:
  std::unique_ptr<Door> Open(const Authority& authority, const SpiffeId& id,
                             const std::vector<std::string>& groups, absl::Duration lifetime,
                             const std::string& task = "");

  TempDirectory directory_;
  std::unique_ptr<Authority> authority_, users_;
  std::string ca_;
  std::unique_ptr<App> app_;
  std::unique_ptr<Door> root_;
};

// The agent of a node. Its tasks start at once and never end; commands in them end at once, and
// they print nothing.
class RunningAgent {
 public:
  static constexpr char kLasting[] = "lasting";  // a command that does not end

  // Returns once it has registered.
  RunningAgent(Door& node, const std::string& name);
  ~RunningAgent();

  // Waits until a task of the job runs.
  void AwaitTask(uint64_t job_uid);
  // Its first attempt of the job's task 0, as the agent names it.
  TaskCall CallOf(uint64_t job_uid) const;

 private:
  void Run();
  void Answer(const v1::ServerMessage& message);
  void Report(const v1::TaskKey& key, v1::TaskReport::State state);
  void Send(v1::AgentMessage message);

  const std::string name_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::ServerMessage>> stream_;
  v1::Welcome welcome_;
  uint64_t reports_ = 0;
  absl::Mutex mutex_;
  std::set<uint64_t> running_ ABSL_GUARDED_BY(mutex_);  // jobs
  std::thread thread_;
};

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_SERVER_SERVICE_ACCESS_WORLD_H_
