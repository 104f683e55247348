#include "core/access/access.h"

#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

namespace berth {
namespace {

constexpr QueueId kTeam{1}, kTeamGpu{2}, kOther{3};
constexpr std::array kAtRoot = {kRootQueue};
constexpr std::array kAtTeam = {kTeam, kRootQueue};
constexpr std::array kAtTeamGpu = {kTeamGpu, kTeam, kRootQueue};
constexpr std::array kAtOther = {kOther, kRootQueue};

Subject User(std::string name) { return {Subject::Kind::kUser, std::move(name)}; }
Subject GroupNamed(std::string name) { return {Subject::Kind::kGroup, std::move(name)}; }
Subject Everyone() { return {Subject::Kind::kEveryone, ""}; }
Principal Caller(std::string name, std::vector<std::string> groups = {}) {
  return {Principal::Kind::kUser, std::move(name), std::move(groups)};
}

void Change(AccessRules& rules, const AccessChange& change) {
  INFO(rules.Check(change).ToString());
  REQUIRE(rules.Check(change).ok());
  rules.Apply(change);
}

AccessRules Enforced(std::vector<Grant> grants = {}) {
  AccessRules rules;
  Change(rules, {.enforce = true, .grant = std::move(grants)});
  return rules;
}

std::string ErrorOf(const AccessRules& rules, const AccessChange& change) {
  const AccessRules before = rules;
  const absl::Status status = rules.Check(change);
  CHECK(!status.ok());
  CHECK(rules == before);
  return std::string(status.message());
}

TEST_CASE("access: verbs have names that lead back to them, and none has two") {
  for (size_t i = 0; i < kVerbs; ++i) {
    const auto verb = static_cast<Verb>(i);
    CHECK(FindVerb(NameOf(verb)) == verb);
  }
  CHECK(FindVerb("job") == std::nullopt);
  CHECK(FindVerb("") == std::nullopt);
}

TEST_CASE("access: a cluster without rules allows everything, one with rules nothing by itself") {
  const AccessRules none;
  CHECK(Allowed(none, Caller("ada"), Verb::kMaintainCluster, kAtRoot));
  CHECK(Allowed(none, Caller(""), Verb::kSubmitJob, kAtTeam));

  const AccessRules rules = Enforced();
  for (size_t i = 0; i < kVerbs; ++i) {
    CHECK_FALSE(Allowed(rules, Caller("ada", {"ml"}), static_cast<Verb>(i), kAtRoot));
    CHECK_FALSE(Allowed(rules, Caller("ada", {"ml"}), static_cast<Verb>(i), kAtTeam));
  }
}

TEST_CASE("access: rules stay in force when the last one is taken back") {
  AccessRules rules = Enforced({{User("ada"), kRootQueue, "admin"}});
  Change(rules, {.revoke = {{User("ada"), kRootQueue, "admin"}}});
  CHECK(rules.grant_count() == 0);
  CHECK(rules.enforced());
  CHECK_FALSE(Allowed(rules, Caller("ada"), Verb::kReadQueue, kAtRoot));
}

TEST_CASE("access: a grant counts for its queue and those below it, and nowhere else") {
  const AccessRules rules = Enforced({{User("ada"), kTeam, "submitter"}});
  CHECK(Allowed(rules, Caller("ada"), Verb::kSubmitJob, kAtTeam));
  CHECK(Allowed(rules, Caller("ada"), Verb::kSubmitJob, kAtTeamGpu));
  CHECK_FALSE(Allowed(rules, Caller("ada"), Verb::kSubmitJob, kAtOther));
  CHECK_FALSE(Allowed(rules, Caller("ada"), Verb::kSubmitJob, kAtRoot));
  CHECK_FALSE(Allowed(rules, Caller("Ada"), Verb::kSubmitJob, kAtTeam));
  CHECK_FALSE(Allowed(rules, Caller("ada "), Verb::kSubmitJob, kAtTeam));
}

TEST_CASE("access: rights over the cluster come only from grants for the cluster") {
  const AccessRules rules =
      Enforced({{User("ada"), kTeam, "admin"}, {User("bob"), kRootQueue, "viewer"}});
  for (const Verb verb : {Verb::kReadCluster, Verb::kOperateCluster, Verb::kMaintainCluster,
                          Verb::kManageNodes, Verb::kReadAudit}) {
    CHECK_FALSE(Allowed(rules, Caller("ada"), verb, kAtTeam));
    CHECK_FALSE(Allowed(rules, Caller("ada"), verb, kAtRoot));
  }
  CHECK(Allowed(rules, Caller("ada"), Verb::kExec, kAtTeamGpu));
  CHECK(Allowed(rules, Caller("bob"), Verb::kReadCluster, kAtRoot));
  CHECK(Allowed(rules, Caller("bob"), Verb::kListJobs, kAtTeamGpu));
  CHECK_FALSE(Allowed(rules, Caller("bob"), Verb::kReadJob, kAtTeamGpu));
}

TEST_CASE("access: groups and everyone") {
  const AccessRules rules = Enforced({{GroupNamed("ml"), kTeam, "submitter"},
                                      {GroupNamed("ops"), kRootQueue, "operator"},
                                      {Everyone(), kRootQueue, "viewer"}});
  CHECK(Allowed(rules, Caller("eve"), Verb::kListJobs, kAtOther));
  CHECK_FALSE(Allowed(rules, Caller("eve"), Verb::kSubmitJob, kAtTeam));
  CHECK(Allowed(rules, Caller("eve", {"x", "ml"}), Verb::kSubmitJob, kAtTeam));
  CHECK(Allowed(rules, Caller("eve", {"ops"}), Verb::kOperateCluster, kAtRoot));
  CHECK_FALSE(Allowed(rules, Caller("eve", {"ops"}), Verb::kMaintainCluster, kAtRoot));
  CHECK_FALSE(Allowed(rules, Caller("eve", {"ops"}), Verb::kGrant, kAtRoot));
  // A user is not a group, and a caller without a name is not one of everyone.
  CHECK_FALSE(Allowed(rules, Caller("ops"), Verb::kOperateCluster, kAtRoot));
  CHECK_FALSE(Allowed(rules, Caller(""), Verb::kListJobs, kAtRoot));
  CHECK_FALSE(Allowed(rules, Caller("", {"ops"}), Verb::kOperateCluster, kAtRoot));
}

TEST_CASE("access: an agent has no rights of a user, whatever its node is called") {
  const AccessRules rules =
      Enforced({{User("n1"), kRootQueue, "admin"}, {Everyone(), kRootQueue, "viewer"}});
  const Principal agent{Principal::Kind::kNode, "n1", {}};
  for (size_t i = 0; i < kVerbs; ++i) {
    CHECK_FALSE(Allowed(rules, agent, static_cast<Verb>(i), kAtRoot));
  }
}

TEST_CASE("access: owners keep what is theirs, and nothing more") {
  const AccessRules rules = Enforced();
  for (size_t i = 0; i < kVerbs; ++i) {
    const auto verb = static_cast<Verb>(i);
    CHECK(Allowed(rules, Caller("ada"), verb, kAtTeam, true) == kOwnerVerbs.Has(verb));
  }
  CHECK_FALSE(kOwnerVerbs.Has(Verb::kSubmitJob));
}

TEST_CASE("access: a custom role has the verbs that it was last given") {
  AccessRules rules = Enforced();
  Change(rules, {.set_roles = {{"ci", {Verb::kSubmitJob, Verb::kSubmitFor}}},
                 .grant = {{User("bot"), kTeam, "ci"}}});
  CHECK(Allowed(rules, Caller("bot"), Verb::kSubmitFor, kAtTeamGpu));
  Change(rules, {.set_roles = {{"ci", {Verb::kListJobs}}}});
  CHECK_FALSE(Allowed(rules, Caller("bot"), Verb::kSubmitFor, kAtTeamGpu));
  CHECK(Allowed(rules, Caller("bot"), Verb::kListJobs, kAtTeamGpu));
  CHECK(ErrorOf(rules, {.delete_roles = {"ci"}}) == "role \"ci\" is still granted to user \"bot\"");
  Change(rules, {.revoke = {{User("bot"), kTeam, "ci"}}, .delete_roles = {"ci"}});
  CHECK(rules.FindRole("ci") == nullptr);
}

TEST_CASE("access: what cannot be applied is refused by name") {
  const AccessRules rules = Enforced({{User("ada"), kTeam, "viewer"}});
  CHECK(ErrorOf(rules, {.grant = {{User("ada"), kTeam, "boss"}}}) == "there is no role \"boss\"");
  CHECK(ErrorOf(rules, {.grant = {{User("ada"), kTeam, "viewer"}}}) ==
        "role \"viewer\" of user \"ada\" is granted there already");
  CHECK(ErrorOf(rules, {.revoke = {{User("ada"), kOther, "viewer"}}}) ==
        "there is no grant of role \"viewer\" of user \"ada\"");
  CHECK(ErrorOf(rules, {.grant = {{User(""), kTeam, "viewer"}}}) == "user has no name");
  CHECK(ErrorOf(rules, {.grant = {{{Subject::Kind::kEveryone, "all"}, kTeam, "viewer"}}}) ==
        "everyone has no name");
  CHECK(ErrorOf(rules, {.grant = {{User("a\nb"), kTeam, "viewer"}}}) ==
        "the name of a user has no quotes, backslashes or control characters");
  CHECK(ErrorOf(rules, {.grant = {{User(std::string(254, 'a')), kTeam, "viewer"}}}) ==
        "the name of a user has at most 253 bytes");
  CHECK(ErrorOf(rules, {.set_roles = {{"admin", {Verb::kReadQueue}}}}) ==
        "role \"admin\" is built in");
  CHECK(ErrorOf(rules, {.delete_roles = {"viewer"}}) == "role \"viewer\" is built in");
  CHECK(ErrorOf(rules, {.delete_roles = {"ci"}}) == "there is no role \"ci\"");
  CHECK(ErrorOf(rules, {.set_roles = {{"ci", {}}}}) == "role \"ci\" has no verbs");
  CHECK(ErrorOf(rules, {.refuse = {{Revocation::Kind::kSerial, "0A"}}}) ==
        "a serial number consists of lower-case hexadecimal digits");
  CHECK(ErrorOf(rules, {.readmit = {{Revocation::Kind::kNode, "n1"}}}) ==
        "node \"n1\" is not refused");
  CHECK(ErrorOf(rules,
                {.refuse = {{Revocation::Kind::kNode, "n1"}, {Revocation::Kind::kNode, "n1"}}}) ==
        "node \"n1\" is refused already");
}

TEST_CASE("access: the numbers of grants, roles and revocations are bounded") {
  AccessRules rules = Enforced();
  AccessChange grants, roles, refusals;
  for (size_t i = 0; i < AccessRules::kMaxGrants; ++i) {
    grants.grant.push_back({User(std::to_string(i)), kTeam, "viewer"});
    refusals.refuse.push_back({Revocation::Kind::kUser, std::to_string(i)});
  }
  for (size_t i = 0; i < AccessRules::kMaxRoles; ++i) {
    roles.set_roles.push_back({std::to_string(i), {Verb::kReadQueue}});
  }
  Change(rules, grants);
  Change(rules, roles);
  Change(rules, refusals);
  CHECK(ErrorOf(rules, {.grant = {{User("ada"), kTeam, "viewer"}}}) ==
        "there are at most 10000 grants");
  CHECK(ErrorOf(rules, {.set_roles = {{"more", {Verb::kReadQueue}}}}) ==
        "there are at most 100 roles of a site");
  CHECK(ErrorOf(rules, {.refuse = {{Revocation::Kind::kUser, "ada"}}}) ==
        "there are at most 10000 revocations");
  // One in exchange for another is no more.
  Change(rules,
         {.revoke = {{User("0"), kTeam, "viewer"}}, .grant = {{User("ada"), kTeam, "viewer"}}});
}

TEST_CASE("access: refused identities and certificates") {
  AccessRules rules = Enforced();
  const Principal node{Principal::Kind::kNode, "n1", {}};
  Change(rules, {.refuse = {{Revocation::Kind::kUser, "eve"},
                            {Revocation::Kind::kNode, "n1"},
                            {Revocation::Kind::kSerial, "0a1b"}}});
  CHECK(rules.IsRefused(Caller("eve"), ""));
  CHECK_FALSE(rules.IsRefused(Caller("n1"), ""));
  CHECK(rules.IsRefused(node, ""));
  CHECK_FALSE(rules.IsRefused({Principal::Kind::kNode, "eve", {}}, ""));
  CHECK(rules.IsRefused(Caller("ada"), "0a1b"));
  CHECK_FALSE(rules.IsRefused(Caller("ada"), "0a1"));
  Change(rules, {.readmit = {{Revocation::Kind::kUser, "eve"}}});
  CHECK_FALSE(rules.IsRefused(Caller("eve"), ""));
}

TEST_CASE("access: nobody grants more than they have, nor outside of where they may") {
  const AccessRules rules = Enforced({{User("lead"), kTeam, "queue-admin"},
                                      {User("root"), kRootQueue, "admin"},
                                      {User("ops"), kRootQueue, "operator"}});
  const Principal lead = Caller("lead"), ops = Caller("ops");
  CHECK(MayGrant(rules, lead, "submitter", kAtTeam));
  CHECK(MayGrant(rules, lead, "queue-admin", kAtTeamGpu));
  CHECK_FALSE(MayGrant(rules, lead, "queue-admin", kAtOther));
  CHECK_FALSE(MayGrant(rules, lead, "viewer", kAtRoot));
  CHECK_FALSE(MayGrant(rules, lead, "admin", kAtTeam));  // job.submitFor
  CHECK_FALSE(MayGrant(rules, lead, "no such role", kAtTeam));
  CHECK_FALSE(MayGrant(rules, ops, "viewer", kAtTeam));
  for (const BuiltInRole& role : BuiltInRoles()) {
    CHECK(MayGrant(rules, Caller("root"), role.name, kAtRoot));
    CHECK(MayGrant(rules, Caller("root"), role.name, kAtTeamGpu));
  }
}

TEST_CASE("access: a refusal names the role that would do, where, and who may grant it") {
  const AccessRules rules = Enforced({{User("lead"), kTeam, "queue-admin"},
                                      {GroupNamed("root"), kRootQueue, "admin"},
                                      {User("ops"), kRootQueue, "operator"}});
  const AccessRemedy submit = AccessRemedyFor(rules, Verb::kSubmitJob, kAtTeamGpu);
  CHECK(submit.role == "submitter");
  CHECK(submit.queue == kTeamGpu);
  CHECK(submit.may_grant == std::vector<Subject>{User("lead"), GroupNamed("root")});

  const AccessRemedy drain = AccessRemedyFor(rules, Verb::kOperateCluster, kAtTeamGpu);
  CHECK(drain.role == "operator");
  CHECK(drain.queue == kRootQueue);
  CHECK(drain.may_grant == std::vector<Subject>{GroupNamed("root")});
}

TEST_CASE("access: a remedy allows what was refused, and rules that were undone are as before") {
  std::mt19937 random(20);
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  const std::vector<std::span<const QueueId>> paths = {kAtRoot, kAtTeam, kAtTeamGpu, kAtOther};
  const std::vector<Subject> subjects = {User("ada"), User("bob"), GroupNamed("ml"), Everyone()};
  AccessRules rules = Enforced();
  for (int round = 0; round < 2000; ++round) {
    const auto path = paths[below(paths.size())];
    const auto verb = static_cast<Verb>(below(kVerbs));
    const Principal caller =
        Caller(below(2) == 0 ? "ada" : "bob",
               below(2) == 0 ? std::vector<std::string>{"ml"} : std::vector<std::string>{});
    if (!Allowed(rules, caller, verb, path)) {
      const AccessRules before = rules;
      const AccessRemedy remedy = AccessRemedyFor(rules, verb, path);
      const Grant grant{User(caller.name), remedy.queue, std::string(remedy.role)};
      if (IsOverCluster(verb)) CHECK(remedy.queue == kRootQueue);
      Change(rules, {.grant = {grant}});
      CHECK(Allowed(rules, caller, verb, path));
      Change(rules, {.revoke = {grant}});
      CHECK(rules == before);
    }
    // Another random grant, or one less.
    const std::vector<Grant> grants = rules.SortedGrants();
    if (grants.size() > 12) {
      Change(rules, {.revoke = {grants[below(grants.size())]}});
    } else {
      const Grant grant{subjects[below(subjects.size())], paths[below(paths.size())].front(),
                        std::string(BuiltInRoles()[below(BuiltInRoles().size())].name)};
      if (rules.Check({.grant = {grant}}).ok()) rules.Apply({.grant = {grant}});
    }
  }
}

}  // namespace
}  // namespace berth
