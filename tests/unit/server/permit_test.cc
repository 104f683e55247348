// What each method needs, and what callers without it are told.
#include "server/access/permit.h"

#include <catch2/catch.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "berth/v1/agent.pb.h"
#include "berth/v1/audit.pb.h"
#include "berth/v1/cluster.pb.h"
#include "berth/v1/explain.pb.h"
#include "berth/v1/hypernode.pb.h"
#include "berth/v1/job.pb.h"
#include "berth/v1/node.pb.h"
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
       {v1::AgentMessage::descriptor()->file(), v1::AuditEntry::descriptor()->file(),
        v1::ClusterInfo::descriptor()->file(), v1::ExplainJobRequest::descriptor()->file(),
        v1::HyperNode::descriptor()->file(), v1::Job::descriptor()->file(),
        v1::Node::descriptor()->file(), v1::Queue::descriptor()->file(),
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
    const bool over_cluster = need.over == Over::kCluster || need.over == Over::kOwnNode;
    CHECK(IsOverCluster(need.verb) == over_cluster);
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

Caller Named(const std::string& name, std::vector<std::string> groups = {}) {
  Caller caller;
  caller.principal = {Principal::Kind::kUser, name, std::move(groups)};
  return caller;
}

constexpr auto kUser = Subject::Kind::kUser;
constexpr auto kGroup = Subject::Kind::kGroup;

TEST_CASE("permit: the owner may, others need a grant, and are told which") {
  Cluster c;
  c.Grant(kGroup, "everybody", kRootQueue, "viewer");
  c.Grant(kUser, "lead", c.team_, "queue-admin");
  c.Grant(kGroup, "root", kRootQueue, "admin");
  const auto cancel = [&](const Caller& caller) {
    return PermitOnJob(c.state(), caller, Verb::kChangeJob, c.job(), "cancel job \"train\"");
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
  for (const Verb verb : {Verb::kListJobs, Verb::kReadJob, Verb::kChangeJob, Verb::kExec}) {
    const absl::Status refused = PermitOnJob(c.state(), Named("bob"), verb, c.job(), "act");
    CHECK(absl::IsNotFound(refused));
    CHECK(refused.message() == "there is no job \"train\"");
  }
}

TEST_CASE("permit: nodes and nobody own no jobs") {
  Cluster c;
  Caller node = Named("ada");
  node.principal.kind = Principal::Kind::kNode;
  CHECK_FALSE(MayOnJob(c.state(), node, Verb::kReadJob, c.job()));
  CHECK(MayOnJob(c.state(), Named("ada"), Verb::kReadJob, c.job()));
  CHECK_FALSE(MayOnJob(c.state(), Named(""), Verb::kReadJob, c.job()));
  CHECK_FALSE(MayOnJob(c.state(), Named("ad"), Verb::kReadJob, c.job()));
}

TEST_CASE("permit: queues and the cluster") {
  Cluster c;
  c.Grant(kUser, "bob", c.team_, "submitter");
  CHECK(PermitOnQueue(c.state(), Named("bob"), Verb::kSubmitJob, c.queue("team-a"), "submit").ok());
  CHECK(MayOnQueue(c.state(), Named("bob"), Verb::kReadQueue, c.a_));
  CHECK_FALSE(MayOnQueue(c.state(), Named("bob"), Verb::kReadQueue, c.other_));
  CHECK(PermitOnQueue(c.state(), Named("bob"), Verb::kSubmitJob, c.queue("other"),
                      "submit to queue \"other\"")
            .message() ==
        "\"bob\" may not submit to queue \"other\" (job.submit): role submitter in queue "
        "\"other\" allows it; an administrator of the configuration may grant it");
  Caller nobody;
  nobody.why_unknown = "a client without TLS";
  CHECK(PermitOnCluster(c.state(), nobody, Verb::kOperateCluster, "drain node \"n1\"").message() ==
        "a client without TLS may not drain node \"n1\" (cluster.operate): role operator for the "
        "cluster allows it; an administrator of the configuration may grant it");
}

TEST_CASE("permit: without rules everybody may do everything") {
  ClusterState state;
  CHECK(PermitOnCluster(state, Caller(), Verb::kMaintainCluster, "back up").ok());
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
