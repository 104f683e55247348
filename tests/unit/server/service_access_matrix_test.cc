// Every method, called as every role, as the owner and not, inside and outside of the subtree where
// the role was granted: through real TLS, what is allowed and what is refused.
#include <catch2/catch.hpp>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/access/access.h"
#include "server/access/rpcs.h"
#include "tests/unit/server/service_access_calls.h"
#include "tests/unit/server/service_access_world.h"

namespace berth::testing {
namespace {

struct Who {
  std::string name;
  VerbSet inside, cluster;  // verbs at kInside's queue, and at the root
  bool owner = false;       // of the job inside
};

const VerbSet& VerbsOf(absl::string_view role) {
  for (const BuiltInRole& one : BuiltInRoles()) {
    if (one.name == role) return one.verbs;
  }
  FAIL("no role " << role);
  return BuiltInRoles()[0].verbs;
}

enum class Answer { kAllowed, kDenied, kNoSuchJob };

Answer AnswerOf(const absl::Status& status, const Place& at) {
  if (absl::IsPermissionDenied(status)) return Answer::kDenied;
  const bool no_such = absl::IsNotFound(status) &&
                       absl::StrContains(status.message(), absl::StrCat("\"", at.job, "\""));
  const bool no_such_kept = absl::IsNotFound(status) &&
                            absl::StrContains(status.message(), absl::StrCat("\"", at.kept, "\""));
  return no_such || no_such_kept ? Answer::kNoSuchJob : Answer::kAllowed;
}

// From the table of methods and the verbs alone.
Answer Expected(const Who& who, Rpc rpc, bool inside) {
  const RpcNeed need = NeedOf(rpc);
  const auto allowed_if = [](bool allowed) { return allowed ? Answer::kAllowed : Answer::kDenied; };
  const VerbSet here = inside ? who.inside | who.cluster : who.cluster;
  const VerbSet mine = inside && who.owner ? here | kOwnerVerbs : here;
  switch (rpc) {  // rows of which the call names one
    case Rpc::kJobServiceListTasks:
      return mine.Has(Verb::kListJobs) ? Answer::kAllowed : Answer::kNoSuchJob;
    case Rpc::kAccessServiceChangeAccess:
      return allowed_if(
          here.Contains((VerbsOf("submitter") - kClusterVerbs) | VerbSet{Verb::kGrant}));
    case Rpc::kAccessServiceCheckAccess:
      return allowed_if(here.Has(Verb::kGrant));
    case Rpc::kExplainServiceWhatIf:
      return Answer::kAllowed;  // UNIMPLEMENTED for all
    default:
      break;
  }
  switch (need.over) {
    case Over::kCluster:
      return allowed_if(who.cluster.Has(need.verb));
    case Over::kQueue:
      return allowed_if(here.Has(need.verb));
    case Over::kJob:
      if (mine.Has(need.verb)) return Answer::kAllowed;
      return mine.Has(Verb::kListJobs) ? Answer::kDenied : Answer::kNoSuchJob;
    case Over::kRows:
    case Over::kAnyone:
      return Answer::kAllowed;
    case Over::kOwnNode:
    case Over::kServer:
      return Answer::kDenied;
  }
  return Answer::kDenied;
}

void CheckAll(Door& door, const Who& who) {
  for (size_t i = 0; i < kRpcs; ++i) {
    const auto rpc = static_cast<Rpc>(i);
    for (const Place& at : {kInside, kOutside}) {
      const absl::Status status = Try(door, rpc, at);
      INFO(who.name << " calls " << NameOf(rpc) << " " << at.name << ": " << status);
      CHECK(AnswerOf(status, at) == Expected(who, rpc, at.queue == kInside.queue));
      CHECK_FALSE(absl::IsUnauthenticated(status));
      CHECK_FALSE(absl::IsUnavailable(status));
    }
  }
}

class Matrix : public AccessWorld {
 public:
  Matrix() {
    Grant("owner", "submitter", "team-a");
    Grant("stranger", "submitter", "other");
    Submit(*User("owner"), kInside.kept, "team-a");
    Submit(*User("stranger"), kOutside.kept, "other");
    Revoke("owner", "submitter", "team-a");
    Revoke("stranger", "submitter", "other");
  }
};

TEST_CASE("access matrix: roles granted for a subtree") {
  Matrix world;
  for (const BuiltInRole& role : BuiltInRoles()) {
    const std::string user = absl::StrCat("team-", role.name);
    world.Grant(user, std::string(role.name), "team");
    CheckAll(*world.User(user), {user, role.verbs - kClusterVerbs, {}});
  }
}

TEST_CASE("access matrix: roles granted for the cluster, to a user, a group and everyone") {
  Matrix world;
  for (const BuiltInRole& role : BuiltInRoles()) {
    const std::string user = absl::StrCat("cluster-", role.name);
    world.Grant(user, std::string(role.name), "");
    CheckAll(*world.User(user), {user, {}, role.verbs});
  }
  v1::ChangeAccessRequest change;
  v1::AccessGrant* grant = change.add_grant();
  grant->mutable_subject()->set_group("ops");
  grant->set_role("operator");
  grant = change.add_grant();
  grant->mutable_subject()->set_everyone(true);
  grant->set_role("viewer");
  REQUIRE(world.Change(world.root(), change).ok());
  CheckAll(*world.User("eve", {"ops"}), {"eve of ops", {}, VerbsOf("operator")});
  CheckAll(*world.User("anybody"), {"anybody", {}, VerbsOf("viewer")});
}

TEST_CASE("access matrix: owners, users without rights, custom roles, administrators") {
  Matrix world;
  CheckAll(*world.User("nothing"), {"nothing", {}, {}});
  CheckAll(*world.User("owner"), {"owner", {}, {}, true});
  v1::ChangeAccessRequest change;
  v1::AccessRole* role = change.add_set_roles();
  role->set_name("logs");
  role->add_verbs("job.list");
  role->add_verbs("job.logs");
  v1::AccessGrant* grant = change.add_grant();
  grant->mutable_subject()->set_user("reader");
  grant->set_role("logs");
  grant->set_queue("team");
  REQUIRE(world.Change(world.root(), change).ok());
  CheckAll(*world.User("reader"), {"reader", {Verb::kListJobs, Verb::kReadLogs}, {}});
  CheckAll(world.root(), {"root", {}, VerbsOf("admin")});
}

TEST_CASE("access matrix: nobody, nodes and the revoked are let in nowhere") {
  Matrix world;
  world.Grant("bad", "admin", "");
  v1::ChangeAccessRequest change;
  change.add_refuse()->set_user("bad");
  change.add_refuse()->set_node("n2");
  REQUIRE(world.Change(world.root(), change).ok());
  const auto nobody = world.Nobody(), node = world.Node("n1"), bad = world.User("bad");
  const auto forged = world.OfUsersAuthority({"berth", SpiffeId::Kind::kNode, "n1"});
  for (size_t i = 0; i < kRpcs; ++i) {
    const auto rpc = static_cast<Rpc>(i);
    INFO(NameOf(rpc));
    const bool unbuilt = rpc == Rpc::kExplainServiceWhatIf;
    const bool whoami = rpc == Rpc::kAccessServiceWhoAmI;
    const bool agent = rpc == Rpc::kAgentServiceConnect;
    const bool server = NeedOf(rpc).over == Over::kServer;
    if (unbuilt) continue;
    for (Door* unknown : {nobody.get(), forged.get()}) {
      const absl::Status status = Try(*unknown, rpc, kInside);
      INFO(status);
      CHECK((whoami            ? status.ok()
             : agent || server ? absl::IsPermissionDenied(status)
                               : absl::IsUnauthenticated(status)));
    }
    CHECK(absl::IsPermissionDenied(Try(*bad, rpc, kInside)));
    CHECK((agent ? Try(*node, rpc, kInside).ok()
                 : absl::IsPermissionDenied(Try(*node, rpc, kInside))));
  }
  CHECK(absl::IsPermissionDenied(TryConnect(*node, "n3")));
  CHECK(absl::IsPermissionDenied(TryConnect(*world.Node("n2"), "n2")));
}

TEST_CASE("access matrix: without rules everything is allowed to users, and nothing to agents") {
  AccessWorld world(false);
  const auto ada = world.User("ada"), node = world.Node("n1");
  for (size_t i = 0; i < kRpcs; ++i) {
    const auto rpc = static_cast<Rpc>(i);
    INFO(NameOf(rpc));
    const bool agent = rpc == Rpc::kAgentServiceConnect;
    const bool server = NeedOf(rpc).over == Over::kServer;
    CHECK(absl::IsPermissionDenied(Try(*ada, rpc, kInside)) == (agent || server));
    if (rpc == Rpc::kExplainServiceWhatIf) continue;
    CHECK(absl::IsPermissionDenied(Try(*node, rpc, kInside)) != agent);
  }
}

void CheckTaskCall(Door& door, Rpc rpc, const Place& at) {
  const absl::Status status = Try(door, rpc, at);
  INFO("a task calls " << NameOf(rpc) << " " << at.name << ": " << status);
  const bool own = at.job == kInside.job;
  const Answer expected = !TasksMayCall(rpc) ? Answer::kDenied
                          : own              ? Answer::kAllowed
                                             : Answer::kNoSuchJob;
  CHECK(AnswerOf(status, at) == expected);
  if (expected == Answer::kAllowed) CHECK(status.ok());
}

// Nothing but reading the task's own job, commands in it, and its requeue, which comes last: after
// it the task does not run.
void CheckTask(Door& door) {
  for (size_t i = 0; i < kRpcs; ++i) {
    const auto rpc = static_cast<Rpc>(i);
    if (rpc == Rpc::kExplainServiceWhatIf) continue;  // UNIMPLEMENTED for all
    if (rpc == Rpc::kJobServiceRequeueJob) continue;
    for (const Place& at : {kInside, kOutside}) CheckTaskCall(door, rpc, at);
  }
  for (const Place& at : {kOutside, kInside}) CheckTaskCall(door, Rpc::kJobServiceRequeueJob, at);
}

// With metadata that vouches for no task, each method is refused, those about the caller included.
void CheckAllRefused(Door& door, const std::string& what, absl::StatusCode code) {
  for (size_t i = 0; i < kRpcs; ++i) {
    const auto rpc = static_cast<Rpc>(i);
    if (rpc == Rpc::kExplainServiceWhatIf) continue;
    const absl::Status status = Try(door, rpc, kInside);
    INFO(what << " calls " << NameOf(rpc) << ": " << status);
    CHECK((status.code() == code || absl::IsPermissionDenied(status)));
    if (TasksMayCall(rpc)) CHECK(status.code() == code);
  }
}

TEST_CASE("access matrix: a task reads and enters its own job, and does nothing else") {
  const bool enforced = GENERATE(true, false);
  AccessWorld world(enforced);
  const auto node = world.Node("n1");
  RunningAgent agent(*node, "n1");
  const uint64_t uid = world.UidOf(kInside.job);
  agent.AwaitTask(uid);
  agent.AwaitTask(world.UidOf(kOutside.job));
  CheckTask(*world.NodeForTask("n1", EncodeTaskCall(agent.CallOf(uid))));
}

TEST_CASE("access matrix: no metadata widens or changes what a caller may do") {
  AccessWorld world;
  const auto node = world.Node("n1"), elsewhere = world.Node("n2");
  RunningAgent agent(*node, "n1");
  const uint64_t uid = world.UidOf(kInside.job);
  agent.AwaitTask(uid);
  RunningAgent other(*elsewhere, "n2");  // after both jobs have started
  const TaskCall right = agent.CallOf(uid);
  const std::string text = EncodeTaskCall(right);
  REQUIRE(Try(*world.NodeForTask("n1", text), Rpc::kJobServiceGetJob, kInside).ok());

  constexpr auto kDenied = absl::StatusCode::kPermissionDenied;
  for (const char* user : {AccessWorld::kAdministrator, "owner", "stranger"}) {
    CheckAllRefused(*world.UserForTask(user, text), user, kDenied);
  }
  CheckAllRefused(*world.NodeForTask("n2", text), "another node", kDenied);
  const auto refused = [&](const std::string& what, const TaskCall& call, absl::StatusCode code) {
    CheckAllRefused(*world.NodeForTask(call.node, EncodeTaskCall(call)), what, code);
  };
  refused("a node where the task does not run", other.CallOf(uid), kDenied);
  TaskCall wrong = right;
  wrong.attempt = 2;
  refused("another attempt", wrong, kDenied);
  wrong = right;
  wrong.task = 7;
  refused("another task", wrong, kDenied);
  wrong = right;
  wrong.job_uid = 999;
  refused("another job", wrong, kDenied);
  wrong = right;
  wrong.key[0] = wrong.key[0] == '0' ? '1' : '0';
  refused("a wrong key", wrong, absl::StatusCode::kUnavailable);
  wrong = right;
  ++wrong.epoch;
  refused("another epoch", wrong, absl::StatusCode::kUnavailable);
  CheckAllRefused(*world.NodeForTask("n1", "nonsense"), "nonsense",
                  absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace berth::testing
