// Access rules on the command line.
#include <catch2/catch.hpp>

#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

v1::AccessGrant GrantOf(const std::string& user, const std::string& role,
                        const std::string& queue) {
  v1::AccessGrant grant;
  if (user.empty()) {
    grant.mutable_subject()->set_everyone(true);
  } else {
    grant.mutable_subject()->set_user(user);
  }
  grant.set_role(role);
  grant.set_queue(queue);
  return grant;
}

TEST_CASE("whoami shows the user, what proves it, and the roles") {
  Cli cli;
  v1::WhoAmIResponse who;
  who.set_user("ada");
  who.add_groups("ml");
  who.set_proof("the identity in the certificate");
  who.set_enforced(true);
  *who.add_grants() = GrantOf("ada", "queue-admin", "team-a");
  *who.add_grants() = GrantOf("", "viewer", "root");
  cli.script.Answer("WhoAmI", who);
  who.clear_grants();
  who.set_enforced(false);
  cli.script.Answer("WhoAmI", who);
  CHECK(cli.Run({"whoami"}) == 0);
  CHECK(cli.out().find("ada") != std::string::npos);
  CHECK(cli.out().find("role queue-admin for queue team-a, user ada") != std::string::npos);
  CHECK(cli.out().find("role viewer for the cluster, everyone") != std::string::npos);
  CHECK(cli.out().find("everything") == std::string::npos);
  CHECK(cli.Run({"whoami"}) == 0);
  CHECK(cli.out().find("everything: access rules are not enforced") != std::string::npos);
}

TEST_CASE("access list shows who has which role, and who is refused") {
  Cli cli;
  v1::AccessRules rules;
  rules.set_enforced(true);
  *rules.add_grants() = GrantOf("ada", "admin", "root");
  *rules.add_grants() = GrantOf("", "submitter", "team-a");
  rules.add_revocations()->set_node("n17");
  cli.script.Answer("GetAccess", rules);
  CHECK(cli.Run({"access", "list"}) == 0);
  CHECK(cli.out() ==
        "WHO       ROLE       FOR\n"
        "user ada  admin      the cluster\n"
        "everyone  submitter  queue team-a\n"
        "node n17  refused    everything\n");
  CHECK(cli.err().empty());
}

TEST_CASE("access grant, revoke and refuse need one whom, and say what they did") {
  Cli cli;
  cli.script.Answer("ChangeAccess", v1::ChangeAccessResponse());
  CHECK(cli.Run({"access", "grant", "viewer"}) == 4);
  CHECK(cli.err() == "berth: give --user, --group or --everyone\n");
  CHECK(cli.Run({"access", "grant", "viewer", "--user", "a", "--group", "b"}) == 2);
  CHECK(cli.Run({"access", "grant", "viewer", "--group", "b", "--queue", "q"}) == 0);
  CHECK(cli.out() == "granted: role viewer for queue q, group b\n");
  CHECK(cli.Run({"access", "revoke", "viewer", "--everyone", "--dry-run"}) == 0);
  CHECK(cli.out() == "revoked: role viewer for the cluster, everyone (dry run)\n");
  CHECK(cli.Run({"access", "refuse"}) == 4);
  CHECK(cli.Run({"access", "refuse", "--serial", "1F:02"}) == 0);
  CHECK(cli.out() == "refused from now on: certificate 1F:02\n");
}

TEST_CASE("access init makes the caller an administrator, unless others are named") {
  Cli cli;
  v1::WhoAmIResponse who;
  who.set_problem("a client without TLS");
  cli.script.Answer("WhoAmI", who);
  cli.script.Answer("WhoAmI", who);
  who.set_user("ada");
  cli.script.Answer("WhoAmI", who);
  who.set_enforced(true);
  cli.script.Answer("WhoAmI", who);
  cli.script.Answer("ChangeAccess", v1::ChangeAccessResponse());
  CHECK(cli.Run({"access", "init"}) == 1);
  CHECK(cli.err().find("you are nobody to the server (a client without TLS)") != std::string::npos);
  CHECK(cli.Run({"access", "init", "--admin", "root", "--everyone", "none"}) == 0);
  CHECK(cli.out() ==
        "granted: role admin for the cluster, user root\n"
        "enforced: what no rule allows is refused; jobs go on as before\n");
  CHECK(cli.Run({"access", "init", "--dry-run"}) == 0);
  CHECK(cli.out() ==
        "would grant: role admin for the cluster, user ada\n"
        "would grant: role submitter for the cluster, everyone\n"
        "would be enforced: what no rule allows is refused\n");
  CHECK(cli.Run({"access", "init"}) == 1);
}

TEST_CASE("access check answers with its exit code") {
  Cli cli;
  v1::CheckAccessResponse answer;
  answer.set_allowed(true);
  *answer.add_grants() = GrantOf("ada", "viewer", "q");
  cli.script.Answer("CheckAccess", answer);
  answer.Clear();
  answer.set_remedy("role submitter in queue \"q\" allows it");
  cli.script.Answer("CheckAccess", answer);
  CHECK(cli.Run({"access", "check", "job.list", "--queue", "q"}) == 0);
  CHECK(cli.out() == "yes: role viewer for queue q, user ada\n");
  CHECK(cli.Run({"access", "check", "job.submit", "--queue", "q"}) == 1);
  CHECK(cli.out() == "no: role submitter in queue \"q\" allows it\n");
  CHECK(cli.Run({"access", "check", "job.list", "--queue", "q", "--job", "j"}) == 2);
}

}  // namespace
}  // namespace berth
