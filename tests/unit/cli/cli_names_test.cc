// Names with types, verbs before nouns, and numbers out of range.
#include <catch2/catch.hpp>

#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

v1::ListJobsResponse OneJob() {
  v1::ListJobsResponse list;
  *list.add_jobs() = MakeJob("x", v1::JOB_RUNNING);
  return list;
}

TEST_CASE("what -o name prints is taken by every verb") {
  Cli cli;
  cli.script.Answer("ListJobs", OneJob());
  cli.script.Answer("CancelJob", MakeJob("x", v1::JOB_CANCELLED));
  v1::Queue queue;
  queue.set_name("q");
  cli.script.Answer("GetQueue", queue);
  cli.script.Answer("CordonNode", v1::Node());
  cli.script.Answer("DeleteHyperNode", v1::DeleteHyperNodeResponse());
  REQUIRE(cli.Run({"job", "list", "-o", "name"}) == 0);
  REQUIRE(cli.out() == "job/x\n");
  CHECK(cli.Run({"job", "cancel", "job/x", "jobs/y", "z"}) == 0);
  const auto cancelled = cli.script.Requests<v1::CancelJobRequest>("CancelJob");
  REQUIRE(cancelled.size() == 3);
  CHECK(cancelled[0].name() == "x");
  CHECK(cancelled[1].name() == "y");
  CHECK(cancelled[2].name() == "z");
  CHECK(cli.Run({"queue", "get", "queues/q"}) == 0);
  CHECK(cli.script.Requests<v1::GetQueueRequest>("GetQueue")[0].name() == "q");
  CHECK(cli.Run({"node", "cordon", "n/n1"}) == 0);
  CHECK(cli.script.Requests<v1::CordonNodeRequest>("CordonNode")[0].name() == "n1");
  CHECK(cli.Run({"hypernode", "delete", "hn/rack"}) == 0);
  CHECK(cli.script.Requests<v1::DeleteHyperNodeRequest>("DeleteHyperNode")[0].name() == "rack");
}

TEST_CASE("a name of another type is refused, saying what is taken") {
  Cli cli;
  CHECK(cli.RunBare({"job", "cancel", "queue/x"}) == 2);
  CHECK(cli.err().find("\"queue/x\" is a queue; this takes a job: job/x or x\n") !=
        std::string::npos);
  CHECK(cli.RunBare({"node", "get", "pod/x"}) == 2);
  CHECK(cli.err().find("unknown type \"pod\"; this takes a node: node/x or x\n") !=
        std::string::npos);
  CHECK(cli.RunBare({"job", "get", "job/"}) == 2);
  CHECK(cli.RunBare({"get", "job/x", "queue/y"}) == 2);
}

TEST_CASE("the verb may come first") {
  Cli cli;
  cli.script.Answer("ListJobs", OneJob());
  cli.script.Answer("GetJob", MakeJob("x", v1::JOB_RUNNING));
  cli.script.Answer("ListTasks", v1::ListTasksResponse());
  cli.script.Answer("DeleteNode", v1::DeleteNodeResponse());
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"get", "job", "x", "-o", "name"},
                                             {"get", "-o", "name", "jobs/x"},
                                             {"-o", "name", "get", "job/x"},
                                             {"get", "jobs", "-o", "name"},  // a list
                                             {"get", "job", "-o", "name"},
                                             {"jobs", "list", "-o", "name"}}) {
    CAPTURE(words);
    CHECK(cli.Run(words) == 0);
    CHECK(cli.out() == "job/x\n");
  }
  CHECK(cli.script.Requests<v1::ListJobsRequest>("ListJobs").size() == 3);
  CHECK(cli.Run({"describe", "job/x"}) == 0);
  CHECK(cli.out().find("Name:") == 0);
  CHECK(cli.Run({"delete", "node/n1"}) == 0);
  CHECK(cli.out() == "node/n1 deleted\n");
}

TEST_CASE("a verb without a type is told what to type") {
  Cli cli;
  CHECK(cli.RunBare({"cancel", "x"}) == 2);
  CHECK(cli.err() == "berth: did you mean: berth job cancel x\n");
  CHECK(cli.RunBare({"get", "x"}) == 2);
  CHECK(cli.err() ==
        "berth: \"get\" of what? berth job get x, or berth queue get x, or berth node get x, or "
        "berth hypernode get x; TYPE/NAME works too: berth get job/x\n");
  CHECK(cli.RunBare({"cancel", "node/n1"}) == 2);
  CHECK(cli.err().find("unknown command \"cancel\"") != std::string::npos);
  CHECK(cli.RunBare({"jbo", "list"}) == 2);
  CHECK(cli.err() == "berth: unknown command \"jbo\"; did you mean \"job\"?\n");
}

TEST_CASE("a number out of range is told the range in words") {
  Cli cli;
  CHECK(cli.RunBare({"submit", "--gpus", "0", "--", "train"}) == 2);
  CHECK(cli.err().find("--gpus: must be 1 or more, got \"0\"\n") != std::string::npos);
  CHECK(cli.err().size() < 200);
  CHECK(cli.RunBare({"submit", "--gpus", "two", "--", "train"}) == 2);
  CHECK(cli.err().find("--gpus: must be a whole number, 1 or more, got \"two\"\n") !=
        std::string::npos);
  CHECK(cli.RunBare({"submit", "--gpus", "99999999999", "--", "train"}) == 2);
  CHECK(cli.err().find("must be 1 or more, and at most 2147483647, got") != std::string::npos);
  CHECK(cli.RunBare({"submit", "--retries", "-1", "--", "train"}) == 2);
  CHECK(cli.err().find("--retries: must be 0 or more, got \"-1\"\n") != std::string::npos);
  CHECK(cli.RunBare({"submit", "--gpu-share", "2", "--", "train"}) == 2);
  CHECK(cli.err().find("--gpu-share: must be 0.001 to 0.999, got \"2\"\n") != std::string::npos);
  CHECK(cli.RunBare({"queue", "create", "q", "--max-jobs", "-3"}) == 2);
  CHECK(cli.err().find("--max-jobs: must be 0 or more, got \"-3\"\n") != std::string::npos);
}

}  // namespace
}  // namespace berth
