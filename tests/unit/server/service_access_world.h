// A berthd with real TLS, access rules, and a client for each user and node that a test names.
//
//   queues: team > team-a, other; jobs: train (owner "owner", in team-a), theirs ("stranger",
//   other)
#ifndef BERTH_TESTS_UNIT_SERVER_SERVICE_ACCESS_WORLD_H_
#define BERTH_TESTS_UNIT_SERVER_SERVICE_ACCESS_WORLD_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "berth/v1/access.grpc.pb.h"
#include "berth/v1/agent.grpc.pb.h"
#include "berth/v1/audit.grpc.pb.h"
#include "server/app.h"
#include "storage/memory/memory_store.h"
#include "support/pki/authority.h"
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
  std::unique_ptr<Door> Node(const std::string& name);
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

 private:
  std::unique_ptr<Door> Open(const Authority& authority, const SpiffeId& id,
                             const std::vector<std::string>& groups, absl::Duration lifetime);

  TempDirectory directory_;
  std::unique_ptr<Authority> authority_, users_;
  std::string ca_;
  std::unique_ptr<App> app_;
  std::unique_ptr<Door> root_;
};

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_SERVER_SERVICE_ACCESS_WORLD_H_
