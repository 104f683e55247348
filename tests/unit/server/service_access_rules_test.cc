// AccessService: the rules of the rules.
#include <catch2/catch.hpp>

#include "tests/unit/server/service_access_world.h"

namespace berth::testing {
namespace {

using Catch::Matchers::Contains;

v1::AccessGrant To(const std::string& user, const std::string& role, const std::string& queue) {
  v1::AccessGrant grant;
  grant.mutable_subject()->set_user(user);
  grant.set_role(role);
  grant.set_queue(queue);
  return grant;
}

v1::ChangeAccessRequest Granting(const std::string& user, const std::string& role,
                                 const std::string& queue) {
  v1::ChangeAccessRequest change;
  *change.add_grant() = To(user, role, queue);
  return change;
}

v1::CheckAccessResponse Ask(Door& door, const std::string& verb, const std::string& queue,
                            const std::string& job = "", const std::string& user = "") {
  v1::CheckAccessRequest request;
  request.set_verb(verb);
  request.set_queue(queue);
  request.set_job(job);
  request.set_user(user);
  v1::CheckAccessResponse response;
  const absl::Status status =
      Call(*door.access, &v1::AccessService::Stub::CheckAccess, request, &response);
  INFO(status);
  REQUIRE(status.ok());
  return response;
}

v1::AccessRules RulesAs(Door& door) {
  v1::AccessRules rules;
  REQUIRE(
      Call(*door.access, &v1::AccessService::Stub::GetAccess, v1::GetAccessRequest(), &rules).ok());
  return rules;
}

TEST_CASE("access service: nobody hands out rights that they do not have") {
  AccessWorld world;
  world.Grant("lead", "queue-admin", "team");
  const auto lead = world.User("lead");
  CHECK(world.Change(*lead, Granting("bob", "submitter", "team-a")).ok());
  CHECK(world.Change(*lead, Granting("bob", "queue-admin", "team-a")).ok());
  const absl::Status more = world.Change(*lead, Granting("bob", "admin", "team-a"));
  CHECK(absl::IsPermissionDenied(more));
  CHECK_THAT(std::string(more.message()),
             Contains("nobody hands out rights that they do not have, here job.submitFor"));
  CHECK(absl::IsPermissionDenied(world.Change(*lead, Granting("bob", "viewer", "other"))));
  CHECK(absl::IsPermissionDenied(world.Change(*lead, Granting("bob", "viewer", ""))));
  v1::ChangeAccessRequest change;
  change.add_refuse()->set_user("root");
  CHECK(absl::IsPermissionDenied(world.Change(*lead, change)));
  change.Clear();
  v1::AccessRole* role = change.add_set_roles();
  role->set_name("mine");
  role->add_verbs("job.list");
  CHECK(absl::IsPermissionDenied(world.Change(*lead, change)));
  // All or nothing.
  change = Granting("carol", "viewer", "team");
  *change.add_grant() = To("carol", "viewer", "other");
  CHECK(absl::IsPermissionDenied(world.Change(*lead, change)));
  CHECK(RulesAs(world.root()).grants_size() == 3);
}

TEST_CASE("access service: what is wrong is named, with its place") {
  AccessWorld world;
  v1::ChangeAccessRequest change;
  change.add_grant()->set_role("viewer");
  change.mutable_grant(0)->set_queue("no-such");
  change.add_set_roles()->add_verbs("job.fly");
  change.add_refuse();
  const absl::Status wrong = world.Change(world.root(), change);
  CHECK(absl::IsInvalidArgument(wrong));
  std::string fields;
  for (const Violation& violation : ViolationsOf(wrong)) fields += violation.field + " ";
  CHECK_THAT(fields, Contains("grant[0].subject") && Contains("set_roles[0].verbs[0]") &&
                         Contains("refuse[0]"));
  CHECK(absl::IsNotFound(world.Change(world.root(), Granting("a", "no-such", ""))));
  CHECK(absl::IsNotFound(world.Change(world.root(), Granting("a", "viewer", "no-such"))));
  CHECK(absl::IsInvalidArgument(world.Change(world.root(), Granting("a\"", "viewer", ""))));
  REQUIRE(world.Change(world.root(), Granting("a", "viewer", "")).ok());
  CHECK(absl::IsAlreadyExists(world.Change(world.root(), Granting("a", "viewer", ""))));
}

TEST_CASE("access service: one sees the grants that one may change, and one's own") {
  AccessWorld world;
  world.Grant("lead", "queue-admin", "team");
  world.Grant("bob", "submitter", "team-a");
  world.Grant("eve", "admin", "");
  const auto count = [&](const std::string& user) {
    return RulesAs(*world.User(user)).grants_size();
  };
  CHECK(count("lead") == 2);
  CHECK(count("bob") == 1);
  CHECK(count("nothing") == 0);
  CHECK(count("eve") == 3);
  v1::WhoAmIResponse who;
  REQUIRE(Call(*world.User("bob", {"ml"})->access, &v1::AccessService::Stub::WhoAmI,
               v1::WhoAmIRequest(), &who)
              .ok());
  CHECK(who.user() == "bob");
  CHECK(who.groups(0) == "ml");
  CHECK(who.enforced());
  REQUIRE(who.grants_size() == 1);
  CHECK(who.grants(0).queue() == "team-a");
  CHECK(who.has_expires());
}

TEST_CASE("access service: check says yes with the grants, no with the remedy") {
  AccessWorld world;
  world.Grant("lead", "queue-admin", "team");
  world.Grant("bob", "viewer", "team");
  const auto lead = world.User("lead"), bob = world.User("bob"), owner = world.User("owner");
  const v1::CheckAccessResponse yes = Ask(*bob, "job.list", "team-a");
  CHECK(yes.allowed());
  REQUIRE(yes.grants_size() == 1);
  CHECK(yes.grants(0).queue() == "team");
  const v1::CheckAccessResponse no = Ask(*bob, "job.submit", "team-a");
  CHECK_FALSE(no.allowed());
  CHECK(no.remedy() ==
        "role submitter in queue \"team-a\" allows it, which user \"lead\" may grant");
  CHECK(Ask(*owner, "job.exec", "", "train").owner());
  CHECK_FALSE(Ask(*owner, "job.submit", "", "train").allowed());
  CHECK(Ask(*lead, "job.list", "team-a", "", "bob").allowed());
  CHECK_FALSE(Ask(*lead, "job.change", "team-a", "", "bob").allowed());
  CHECK(Ask(world.root(), "cluster.read", "", "", AccessWorld::kAdministrator).administrator());
  CHECK_FALSE(Ask(*bob, "cluster.read", "team-a").allowed());
  CHECK(Ask(*world.User("x"), "job.list", "").remedy().find("may grant") != std::string::npos);
}

TEST_CASE(
    "access service: rules survive a restart of the check, and enforcing is for administrators") {
  AccessWorld world(false);
  v1::ChangeAccessRequest change;
  change.set_enforce(true);
  change.set_validate_only(true);
  REQUIRE(world.Change(*world.User("ada"), change).ok());  // everybody may do everything
  CHECK(Ask(*world.User("ada"), "cluster.maintain", "").not_enforced());
  change.set_validate_only(false);
  REQUIRE(world.Change(*world.User("ada"), change).ok());
  CHECK(absl::IsPermissionDenied(world.Change(*world.User("ada"), change)));
  CHECK(world.Change(world.root(), change).ok());
  CHECK_FALSE(Ask(*world.User("ada"), "cluster.maintain", "").allowed());
}

}  // namespace
}  // namespace berth::testing
