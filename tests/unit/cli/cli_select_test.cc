// How verbs select jobs, and job list.
#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

v1::ListJobsResponse Jobs(const std::vector<std::string>& names) {
  v1::ListJobsResponse list;
  uint64_t uid = 100;  // newest first, as the server lists them
  for (const std::string& name : names) {
    *list.add_jobs() = MakeJob(name, v1::JOB_RUNNING);
    list.mutable_jobs(list.jobs_size() - 1)->set_uid(uid--);
  }
  return list;
}

std::vector<std::string> Cancelled(Cli& cli) {
  std::vector<std::string> names;
  for (const auto& request : cli.script.Requests<v1::CancelJobRequest>("CancelJob"))
    names.push_back(request.name());
  return names;
}

TEST_CASE("a pattern selects the jobs whose names match") {
  Cli cli;
  cli.script.Answer("ListJobs", Jobs({"train-2", "train-1", "eval"}));
  cli.script.Answer("CancelJob", MakeJob("train-2", v1::JOB_CANCELLED));
  cli.script.Answer("CancelJob", MakeJob("train-1", v1::JOB_CANCELLED));
  CHECK(cli.Run({"job", "cancel", "train-*"}) == 0);
  CHECK(Cancelled(cli) == std::vector<std::string>{"train-2", "train-1"});
  CHECK(cli.out() == "job/train-2 cancelled\njob/train-1 cancelled\n");
  CHECK(cli.err() == "berth: cancel: 2 jobs\n");
  const auto request = cli.script.Requests<v1::ListJobsRequest>("ListJobs")[0];
  CHECK(request.filter().active_only());
  CHECK(request.filter().name_pattern() == "train-*");
  CHECK(cli.Run({"job", "cancel", "nothing-*"}) == 3);
  CHECK(cli.err() == "berth: no job matches \"nothing-*\"\n");
}

TEST_CASE("exact names need no list") {
  Cli cli;
  cli.script.Answer("CancelJob", MakeJob("a", v1::JOB_CANCELLED));
  cli.in_terminal = true;
  CHECK(cli.Run({"job", "cancel", "a", "job/b", "c"}) == 0);  // without confirmation
  CHECK(Cancelled(cli) == std::vector<std::string>{"a", "b", "c"});
  CHECK(cli.script.Requests<v1::ListJobsRequest>("ListJobs").empty());
}

TEST_CASE("filters select jobs") {
  Cli cli;
  cli.script.Answer("ListJobs", Jobs({"b", "a"}));
  cli.script.Answer("CancelJob", MakeJob("a", v1::JOB_CANCELLED));
  CHECK(cli.Run({"job", "cancel", "--queue", "queue/q", "--user", "ann", "--state",
                 "pending,running", "--label", "team=a", "--node", "node/n1"}) == 0);
  CHECK(Cancelled(cli) == std::vector<std::string>{"b", "a"});
  const v1::JobFilter filter = cli.script.Requests<v1::ListJobsRequest>("ListJobs")[0].filter();
  CHECK(filter.queue() == "q");
  CHECK(filter.user() == "ann");
  CHECK(filter.node() == "n1");
  CHECK(filter.states_size() == 2);
  CHECK(filter.labels().at("team") == "a");
  CHECK_FALSE(filter.active_only());
  // A name and a filter must both match.
  CHECK(cli.Run({"job", "cancel", "a", "--queue", "q"}) == 0);
  CHECK(Cancelled(cli).back() == "a");
  CHECK(Cancelled(cli).size() == 3);
  Cli none;
  none.script.Answer("ListJobs", v1::ListJobsResponse());
  CHECK(none.Run({"job", "cancel", "--user", "ann"}) == 0);  // like scancel -u
  CHECK(none.err() == "berth: no job matches\n");
}

TEST_CASE("each verb selects only among jobs in suitable states") {
  Cli cli;
  cli.script.Answer("ListJobs", Jobs({"a"}));
  cli.script.Answer("ResumeJob", MakeJob("a", v1::JOB_PENDING));
  cli.script.Answer("DeleteJob", v1::DeleteJobResponse());
  CHECK(cli.Run({"job", "resume", "--queue", "q"}) == 0);
  CHECK(cli.Run({"job", "delete", "--queue", "q"}) == 0);
  const auto requests = cli.script.Requests<v1::ListJobsRequest>("ListJobs");
  CHECK(requests[0].filter().suspended_only());
  CHECK(requests[0].filter().states().empty());
  CHECK(requests[1].filter().ended_only());
}

TEST_CASE("on a terminal more than one match needs confirmation") {
  Cli cli;
  cli.script.Answer("ListJobs", Jobs({"b", "a"}));
  cli.script.Answer("CancelJob", MakeJob("a", v1::JOB_CANCELLED));
  cli.in_terminal = true;
  for (const char* answer : {"n\n", "\n", ""}) {
    cli.answer = answer;
    CHECK(cli.Run({"job", "cancel", "--queue", "q"}) == 2);
    CHECK(cli.err() == "cancel 2 jobs (b, a)? [y/N] berth: nothing was done\n");
  }
  CHECK(Cancelled(cli).empty());
  cli.answer = "y\n";
  CHECK(cli.Run({"job", "cancel", "--queue", "q"}) == 0);
  CHECK(Cancelled(cli).size() == 2);
  cli.answer = "";
  CHECK(cli.Run({"job", "cancel", "--queue", "q", "--yes"}) == 0);
  CHECK(cli.Run({"job", "cancel", "b*"}) == 0);  // one match
  CHECK(Cancelled(cli).size() == 5);
}

TEST_CASE("a script gets no question, and --all alone needs --yes there") {
  Cli cli;
  cli.script.Answer("ListJobs", Jobs({"b", "a"}));
  cli.script.Answer("CancelJob", MakeJob("a", v1::JOB_CANCELLED));
  CHECK(cli.Run({"job", "cancel", "--all"}) == 2);
  CHECK(cli.err() == "berth: cancel --all of 2 jobs needs --yes in a script\n");
  CHECK(Cancelled(cli).empty());
  CHECK(cli.Run({"job", "cancel", "--all", "--yes"}) == 0);
  CHECK(Cancelled(cli).size() == 2);
}

TEST_CASE("a pattern that matches every name equals --all") {
  Cli cli;
  cli.script.Answer("ListJobs", Jobs({"b", "a"}));
  cli.script.Answer("CancelJob", MakeJob("a", v1::JOB_CANCELLED));
  for (const char* every : {"*", "**", "?*", "job/*"}) {
    CHECK(cli.Run({"job", "cancel", every}) == 2);
    CHECK_THAT(cli.err(), Contains("of 2 jobs needs --yes in a script\n"));
    CHECK(cli.Run({"job", "cancel", "b", every}) == 2);
    CHECK(cli.Run({"job", "cancel", "--all", every}) == 2);
  }
  CHECK(Cancelled(cli).empty());
  CHECK(cli.Run({"job", "cancel", "*", "--yes"}) == 0);
  CHECK(Cancelled(cli).size() == 2);
  CHECK(cli.Run({"job", "cancel", "*", "--queue", "q"}) == 0);  // the filter selects
  CHECK(cli.Run({"job", "cancel", "?"}) == 0);                  // and so does this pattern
  CHECK(Cancelled(cli).size() == 6);
}

TEST_CASE("with several jobs the first error sets the exit code, and the others are processed") {
  Cli cli;
  cli.script.Answer("ListJobs", Jobs({"b", "a"}));
  cli.script.Answer("SuspendJob", absl::FailedPreconditionError("job \"b\" has ended"));
  cli.script.Answer("SuspendJob", MakeJob("a", v1::JOB_SUSPENDED));
  CHECK(cli.Run({"job", "suspend", "--queue", "q"}) == 1);
  CHECK(cli.out() == "job/a suspended\n");
  CHECK_THAT(cli.err(), Contains("berth: suspend: 2 jobs, some failed\n"));
}

TEST_CASE("a verb without names and filters explains how to select") {
  Cli cli;
  CHECK(cli.RunBare({"job", "cancel"}) == 2);
  CHECK_THAT(cli.err(), Contains("no jobs selected: give names"));
}

TEST_CASE("job list: active jobs, newest first, unless other options are given") {
  Cli cli;
  cli.script.Answer("ListJobs", Jobs({"b", "c", "a"}));
  CHECK(cli.Run({"job", "list", "-o", "name"}) == 0);
  CHECK(cli.out() == "job/b\njob/c\njob/a\n");
  CHECK(cli.Run({"job", "list", "--all", "-o", "name"}) == 0);
  CHECK(cli.Run({"job", "list", "--state", "failed", "-o", "name"}) == 0);
  CHECK(cli.Run({"job", "list", "--since", "2h", "--node", "n1", "-o", "name"}) == 0);
  CHECK(cli.Run({"job", "list", "--sort", "name", "-o", "name"}) == 0);
  CHECK(cli.out() == "job/a\njob/b\njob/c\n");
  CHECK(cli.Run({"job", "list", "--sort", "name", "--reverse", "--limit", "1", "-o", "name"}) == 0);
  CHECK(cli.out() == "job/c\n");
  CHECK(cli.Run({"job", "list", "--reverse", "-o", "name"}) == 0);
  CHECK(cli.out() == "job/a\njob/c\njob/b\n");
  CHECK(cli.Run({"job", "list", "--name", "[ab]", "-o", "name"}) == 0);
  CHECK(cli.out() == "job/b\njob/a\n");
  const auto requests = cli.script.Requests<v1::ListJobsRequest>("ListJobs");
  CHECK(requests[0].order() == v1::ListJobsRequest::NEWEST_FIRST);
  CHECK(requests[0].filter().active_only());
  CHECK_FALSE(requests[1].filter().active_only());
  CHECK_FALSE(requests[2].filter().active_only());
  CHECK(requests[3].filter().submitted_after().seconds() == 1'795'003'600 - 7200);
  CHECK(requests[3].filter().node() == "n1");
  CHECK(requests[7].filter().name_pattern().empty());  // the server does not support [
  CHECK(cli.RunBare({"job", "list", "--sort", "colour"}) == 2);
  CHECK_THAT(cli.err(), Contains("--sort: colour not in"));
}

TEST_CASE("job list --limit requests only the pages that it needs") {
  Cli cli;
  v1::ListJobsResponse page = Jobs({"b", "a"});
  page.set_next_page_token("more");
  cli.script.Answer("ListJobs", page);
  CHECK(cli.Run({"job", "list", "--limit", "1", "-o", "name"}) == 0);
  CHECK(cli.out() == "job/b\n");
  CHECK(cli.script.Requests<v1::ListJobsRequest>("ListJobs").size() == 1);
}

TEST_CASE("an empty job list says how to list other jobs") {
  Cli cli;
  cli.script.Answer("ListJobs", v1::ListJobsResponse());
  CHECK(cli.Run({"job", "list"}) == 0);
  CHECK(cli.err() == "no active jobs; --all also shows jobs that have ended\n");
  CHECK(cli.Run({"job", "list", "--all"}) == 0);
  CHECK(cli.err() == "no jobs\n");
  CHECK(cli.Run({"job", "list", "-o", "json"}) == 0);
  CHECK(cli.out() == "[]\n");
}

TEST_CASE("the last column of job list fits the terminal") {
  Cli cli;
  v1::ListJobsResponse list = Jobs({"a-job-with-a-name", "b"});
  v1::JobStatus& status = *list.mutable_jobs(0)->mutable_status();
  status.set_state(v1::JOB_FAILED);
  status.set_message(std::string(150, 'x') + "\xc3\xa9nd");
  cli.script.Answer("ListJobs", list);
  const auto longest = [&] {
    size_t most = 0;
    for (absl::string_view line : absl::StrSplit(cli.out(), '\n'))
      most = std::max(most, line.size());
    return most;
  };
  cli.width = 80;
  CHECK(cli.Run({"job", "list"}) == 0);
  CHECK(longest() == 80);
  CHECK_THAT(cli.out(), Contains("xxx...\n"));
  cli.width = 250;
  CHECK(cli.Run({"job", "list"}) == 0);
  CHECK_THAT(cli.out(), Contains("\xc3\xa9nd\n"));
  cli.width = 30;  // too narrow for all columns: a few words of the reason remain
  CHECK(cli.Run({"job", "list"}) == 0);
  CHECK_THAT(cli.out(), Contains("xxxxxxxxxxxxx...\n"));
  cli.width = 0;  // a pipe
  CHECK(cli.Run({"job", "list"}) == 0);
  CHECK(longest() > 80);
}

}  // namespace
}  // namespace berth
