// What each method needs, and what callers without it are told.
#include "server/access/permit.h"

#include <catch2/catch.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "berth/v1/access.pb.h"
#include "berth/v1/agent.pb.h"
#include "berth/v1/audit.pb.h"
#include "berth/v1/cluster.pb.h"
#include "berth/v1/explain.pb.h"
#include "berth/v1/hypernode.pb.h"
#include "berth/v1/job.pb.h"
#include "berth/v1/node.pb.h"
#include "berth/v1/priority_class.pb.h"
#include "berth/v1/queue.pb.h"
#include "berth/v1/watch.pb.h"
#include "core/model/apply.h"
#include "server/access/rpcs.h"

namespace berth {
namespace {

TEST_CASE("permit: the rows are those of the protos") {
  std::set<std::string> rows, methods;
  for (size_t i = 0; i < kRpcs; ++i) rows.insert(std::string(NameOf(static_cast<Rpc>(i))));
  for (const google::protobuf::FileDescriptor* file :
       {v1::AccessRules::descriptor()->file(), v1::AgentMessage::descriptor()->file(),
        v1::AuditEntry::descriptor()->file(), v1::ClusterInfo::descriptor()->file(),
        v1::ExplainJobRequest::descriptor()->file(), v1::HyperNode::descriptor()->file(),
        v1::Job::descriptor()->file(), v1::Node::descriptor()->file(),
        v1::PriorityClass::descriptor()->file(), v1::Queue::descriptor()->file(),
        v1::WatchRequest::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        methods.insert(
            absl::StrCat(file->service(s)->name(), ".", file->service(s)->method(m)->name()));
      }
    }
  }
  CHECK(rows.size() == kRpcs);
  CHECK(rows == methods);
}

TEST_CASE("permit: verbs over the cluster are needed over the cluster, the others over queues") {
  for (size_t i = 0; i < kRpcs; ++i) {
    const auto rpc = static_cast<Rpc>(i);
    const RpcNeed need = NeedOf(rpc);
    INFO(NameOf(rpc));
    const bool over_cluster =
        need.over == Over::kCluster || need.over == Over::kOwnNode || need.over == Over::kServer;
    CHECK(IsOverCluster(need.verb) == over_cluster);
    CHECK_FALSE(need.act.empty());
  }
}

// default, team, team-a below team; job "train" of ada in team-a.
class Cluster {
 public:
  Cluster() {
    team_ = AddQueue("team", kRootQueue);
    a_ = AddQueue("team-a", team_);
    other_ = AddQueue("other", kRootQueue);
    JobSpec spec;
    spec.name = "train";
    spec.queue = a_;
    spec.owner = "ada";
    spec.min_available = 1;
    spec.groups = {{.name = "w", .replicas = 1}};
    Happen(JobSubmitted{state_.next_job_id(), spec});
    Happen(AccessChanged{{.enforce = true}});
  }
  void Grant(Subject::Kind kind, const std::string& name, QueueId queue, const std::string& role) {
    Happen(AccessChanged{{.grant = {{{kind, name}, queue, role}}}});
  }
  void Happen(EventBody body) {
    const absl::Status status = Apply(state_, {absl::UnixEpoch(), std::move(body)});
    INFO(status.ToString());
    REQUIRE(status.ok());
  }
  const ClusterState& state() const { return state_; }
  const Job& job() const { return *state_.FindJob("train"); }
  const Queue& queue(const std::string& name) const { return *state_.FindQueue(name); }
  QueueId team_, a_, other_;

 private:
  QueueId AddQueue(const std::string& name, QueueId parent) {
    const QueueId id = state_.next_queue_id();
    QueueSpec spec;
    spec.name = name;
    spec.parent = parent;
    Happen(QueueCreated{id, spec});
    return id;
  }

  ClusterState state_;
};

Caller CallerNamed(const std::string& name, std::vector<std::string> groups = {}) {
  Caller caller;
  caller.principal = {Principal::Kind::kUser, name, std::move(groups)};
  return caller;
}
Rights Of(const Caller& caller) { return Rights(std::make_shared<const Caller>(caller)); }
Rights Named(const std::string& name, std::vector<std::string> groups = {}) {
  return Of(CallerNamed(name, std::move(groups)));
}

constexpr auto kUser = Subject::Kind::kUser;
constexpr auto kGroup = Subject::Kind::kGroup;
const Time kNow = absl::UnixEpoch();

TEST_CASE("permit: the owner may, others need a grant, and are told which") {
  Cluster c;
  c.Grant(kGroup, "everybody", kRootQueue, "viewer");
  c.Grant(kUser, "lead", c.team_, "queue-admin");
  c.Grant(kGroup, "root", kRootQueue, "admin");
  const auto cancel = [&](Rights rights) {
    return PermitOnJob(c.state(), rights, Rpc::kJobServiceCancelJob, c.job());
  };
  CHECK(cancel(Named("ada")).ok());
  CHECK(cancel(Named("lead")).ok());
  CHECK(cancel(Named("eve", {"root"})).ok());
  const absl::Status refused = cancel(Named("bob", {"everybody"}));
  CHECK(absl::IsPermissionDenied(refused));
  CHECK(refused.message() ==
        "\"bob\" may not cancel job \"train\" (job.change): role queue-admin in queue \"team-a\" "
        "allows it, which user \"lead\" and group \"root\" may grant");
}

TEST_CASE("permit: a job that one may not list does not exist") {
  Cluster c;
  c.Grant(kUser, "bob", c.other_, "queue-admin");
  Rights bob = Named("bob");
  for (const Rpc rpc : {Rpc::kJobServiceGetJob, Rpc::kJobServiceCancelJob, Rpc::kJobServiceExec}) {
    const absl::Status refused = PermitOnJob(c.state(), bob, rpc, c.job());
    CHECK(absl::IsNotFound(refused));
    CHECK(refused.message() == "there is no job \"train\"");
  }
}

TEST_CASE("permit: nodes and nobody own no jobs") {
  Cluster c;
  Caller node = CallerNamed("ada");
  node.principal.kind = Principal::Kind::kNode;
  CHECK_FALSE(Of(node).OnJob(c.state(), Verb::kReadJob, c.job()));
  CHECK(Named("ada").OnJob(c.state(), Verb::kReadJob, c.job()));
  CHECK_FALSE(Named("").OnJob(c.state(), Verb::kReadJob, c.job()));
  CHECK_FALSE(Named("ad").OnJob(c.state(), Verb::kReadJob, c.job()));
}

TEST_CASE("permit: queues and the cluster") {
  Cluster c;
  c.Grant(kUser, "bob", c.team_, "submitter");
  Rights bob = Named("bob");
  constexpr Rpc kSubmit = Rpc::kJobServiceSubmitJobs;
  CHECK(PermitOnQueue(c.state(), bob, kSubmit, c.queue("team-a")).ok());
  CHECK(bob.OnQueue(c.state(), Verb::kReadQueue, c.a_));
  CHECK_FALSE(bob.OnQueue(c.state(), Verb::kReadQueue, c.other_));
  CHECK(PermitOnQueue(c.state(), bob, kSubmit, c.queue("other")).message() ==
        "\"bob\" may not submit jobs to queue \"other\" (job.submit): role submitter in queue "
        "\"other\" allows it; an administrator of the configuration (access.administrators) may "
        "grant it");
  CHECK(
      Admit(c.state(), bob, Rpc::kNodeServiceDrainNode, kNow).message() ==
      "\"bob\" may not drain nodes (cluster.operate): role operator for the cluster allows it; an "
      "administrator of the configuration (access.administrators) may grant it");
  CHECK(Admit(c.state(), bob, Rpc::kJobServiceListJobs, kNow).ok());
}

TEST_CASE("permit: rights are looked up again when the rules have changed") {
  Cluster c;
  Rights bob = Named("bob");
  CHECK_FALSE(bob.OnQueue(c.state(), Verb::kReadQueue, c.a_));
  c.Grant(kUser, "bob", c.team_, "viewer");
  CHECK(bob.OnQueue(c.state(), Verb::kReadQueue, c.a_));
  c.Happen(AccessChanged{{.revoke = {{{kUser, "bob"}, c.team_, "viewer"}}}});
  CHECK_FALSE(bob.OnQueue(c.state(), Verb::kReadQueue, c.a_));
}

TEST_CASE("permit: nobody is admitted once rules are enforced, but may ask who they are") {
  Cluster c;
  Caller unknown;
  unknown.why_unknown = "a client without TLS";
  Rights nobody = Of(unknown);
  const absl::Status refused = Admit(c.state(), nobody, Rpc::kJobServiceListJobs, kNow);
  CHECK(absl::IsUnauthenticated(refused));
  CHECK(refused.message() ==
        "a client without TLS identifies nobody, and access rules are enforced (berth whoami)");
  CHECK(Admit(c.state(), nobody, Rpc::kAccessServiceWhoAmI, kNow).ok());
  CHECK(Admit(ClusterState(), nobody, Rpc::kJobServiceListJobs, kNow).ok());
}

TEST_CASE("permit: agents, revoked and expired certificates are refused, with and without rules") {
  Cluster c;
  Caller node = CallerNamed("n1");
  node.principal.kind = Principal::Kind::kNode;
  Rights agent = Of(node);
  CHECK(Admit(ClusterState(), agent, Rpc::kClusterServiceGetClusterInfo, kNow).message() ==
        "node \"n1\" may connect as an agent, and nothing else");
  CHECK_FALSE(agent.OnCluster(ClusterState(), Verb::kReadCluster));

  c.Grant(kUser, "bob", kRootQueue, "admin");
  Caller bob = CallerNamed("bob");
  bob.serial = "1f";
  bob.expires = kNow + absl::Seconds(1);
  Rights rights = Of(bob);
  CHECK(Admit(c.state(), rights, Rpc::kNodeServiceListNodes, kNow).ok());
  CHECK(absl::IsUnauthenticated(
      Admit(c.state(), rights, Rpc::kNodeServiceListNodes, kNow + absl::Seconds(2))));
  for (const Revocation& what :
       {Revocation{Revocation::Kind::kSerial, "1f"}, Revocation{Revocation::Kind::kUser, "bob"}}) {
    c.Happen(AccessChanged{{.refuse = {what}}});
    CHECK(Admit(c.state(), rights, Rpc::kNodeServiceListNodes, kNow).message() ==
          "the certificate of user \"bob\" is revoked");
    c.Happen(AccessChanged{{.readmit = {what}}});
  }
  Caller any = CallerNamed("agent");  // its certificate names no node
  CHECK(CheckNotRevoked(c.state(), any, "n1").ok());
  c.Happen(AccessChanged{{.refuse = {{Revocation::Kind::kNode, "n1"}}}});
  CHECK(CheckNotRevoked(c.state(), any, "n1").message() == "node \"n1\" is revoked");
  CHECK_FALSE(CheckNotRevoked(c.state(), node, "n1").ok());
  CHECK(CheckNotRevoked(c.state(), any, "n2").ok());
}

TEST_CASE("permit: administrators of the configuration need no rule") {
  Cluster c;
  Caller root = CallerNamed("root");
  root.administrator = true;
  Rights rights = Of(root);
  CHECK(Admit(c.state(), rights, Rpc::kClusterServiceBackup, kNow).ok());
  CHECK(rights.OnJob(c.state(), Verb::kExec, c.job()));
  CHECK(rights.SeesAll(c.state()));
}

TEST_CASE("permit: without rules everybody may do everything") {
  ClusterState state;
  Rights anybody = Of(Caller());
  CHECK(Admit(state, anybody, Rpc::kClusterServiceBackup, kNow).ok());
}

TEST_CASE("permit: grants of a deleted queue are gone") {
  Cluster c;
  c.Grant(kUser, "bob", c.other_, "viewer");
  CHECK(c.state().access().grant_count() == 1);
  c.Happen(QueueDeleted{c.other_});
  CHECK(c.state().access().grant_count() == 0);
}

}  // namespace
}  // namespace berth
