// berth audit.
#include <catch2/catch.hpp>

#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

v1::ListAuditResponse TwoCommands() {
  v1::ListAuditResponse list;
  v1::AuditEntry& first = *list.add_entries();
  first.set_sequence(7);
  first.mutable_time()->set_seconds(1'795'003'600);
  first.mutable_actor()->set_kind(v1::AuditActor::USER);
  first.mutable_actor()->set_name("ada");
  first.mutable_actor()->set_door(v1::AuditActor::IDENTITY);
  first.mutable_actor()->set_address("10.0.0.7:1");
  first.set_method("JobService.SubmitJobs");
  first.set_revision(12);
  v1::AuditChange& change = *first.add_changes();
  change.set_object("job");
  change.set_action("submitted");
  for (const char* name : {"a", "b", "c", "d", "e"}) change.add_names(name);
  v1::AuditEntry& second = *list.add_entries();
  second.mutable_actor()->set_kind(v1::AuditActor::SERVER);
  second.set_method("ClusterService.PauseCluster");
  return list;
}

TEST_CASE("audit lists who changed what") {
  Cli cli;
  cli.script.Answer("ListAudit", TwoCommands());
  CHECK(cli.Run({"audit", "--since", "2h", "--actor", "ada", "--job", "job/a"}) == 0);
  CHECK(cli.out() ==
        "TIME                 ACTOR     METHOD                       CHANGE\n"
        "2026-11-18 12:06:40  ada       JobService.SubmitJobs        job a, b, c and 2 more "
        "submitted\n"
        "-                    (server)  ClusterService.PauseCluster  -\n");
  const auto request = cli.script.Requests<v1::ListAuditRequest>("ListAudit")[0];
  CHECK(request.actor() == "ada");
  CHECK(request.job() == "a");
  CHECK(request.since().seconds() == absl::ToUnixSeconds(cli.world.Now() - absl::Hours(2)));
  CHECK_FALSE(request.has_until());
  CHECK_FALSE(request.refused());
  CHECK(cli.Run({"audit", "-o", "wide"}) == 0);
  CHECK(cli.out().find("Identity") != std::string::npos);
}

TEST_CASE("audit -o json prints one object a line") {
  Cli cli;
  cli.script.Answer("ListAudit", TwoCommands());
  CHECK(cli.Run({"audit", "-o", "json", "--until", "2026-12-01T10:00"}) == 0);
  const std::string out = cli.out();
  CHECK(std::count(out.begin(), out.end(), '\n') == 2);
  CHECK(cli.out().find(R"("sequence":7,)") != std::string::npos);
  CHECK(cli.Run({"audit", "-o", "yaml"}) == 2);
}

TEST_CASE("audit --refused shows who was refused") {
  Cli cli;
  v1::ListAuditResponse list;
  v1::AuditEntry& entry = *list.add_entries();
  entry.mutable_actor()->set_name("eve");
  entry.mutable_actor()->set_kind(v1::AuditActor::USER);
  entry.set_method("JobService.CancelJob");
  entry.set_target("job/train");
  entry.set_message("no");
  cli.script.Answer("ListAudit", list);
  CHECK(cli.Run({"audit", "--refused"}) == 0);
  CHECK(cli.out() ==
        "TIME  ACTOR  METHOD                TARGET     REFUSAL\n"
        "-     eve    JobService.CancelJob  job/train  no\n");
  CHECK(cli.script.Requests<v1::ListAuditRequest>("ListAudit")[0].refused());
}

TEST_CASE("audit --verify prints the verdict on both chains") {
  Cli cli;
  v1::VerifyAuditResponse found;
  found.set_first_sequence(3);
  found.set_last_sequence(9);
  found.set_entries(7);
  found.set_head_hash("ab12");
  cli.script.Answer("VerifyAudit", found);
  CHECK(cli.Run({"audit", "--verify"}) == 0);
  CHECK(cli.out() ==
        "commands: entries 3 to 9 are unchanged; hash ab12\n"
        "refused calls: entries 3 to 9 are unchanged; hash ab12\n");
  v1::VerifyAuditResponse broken;
  broken.set_broken("entry 4 was changed");
  Cli other;
  other.script.Answer("VerifyAudit", broken);
  CHECK(other.Run({"audit", "--verify", "--refused"}) == 1);
  CHECK(other.out() == "refused calls: BROKEN: entry 4 was changed\n");
}

TEST_CASE("audit: times that are none are refused") {
  Cli cli;
  CHECK(cli.Run({"audit", "--since", "yesterday"}) == 4);
  CHECK(cli.err().find("neither how long ago") != std::string::npos);
}

}  // namespace
}  // namespace berth
