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

TEST_CASE("every verb accepts what -o name prints") {
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

TEST_CASE("a name of another type is refused, with the accepted form") {
  Cli cli;
  CHECK(cli.RunBare({"job", "cancel", "queue/x"}) == 2);
  CHECK(cli.err().find("\"queue/x\" is a queue; expected a job: job/x or x\n") !=
        std::string::npos);
  CHECK(cli.RunBare({"node", "get", "pod/x"}) == 2);
  CHECK(cli.err().find("unknown type \"pod\"; expected a node: node/x or x\n") !=
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

TEST_CASE("get of a type accepts the options of its list, in any position") {
  Cli cli;
  cli.script.Answer("ListJobs", OneJob());
  cli.script.Answer("ListNodes", v1::ListNodesResponse());
  cli.script.Answer("ListHyperNodes", v1::ListHyperNodesResponse());
  cli.script.Answer("GetJob", MakeJob("x", v1::JOB_RUNNING));
  CHECK(cli.Run({"get", "nodes", "-l", "kind=real"}) == 0);
  CHECK(cli.Run({"get", "-l", "kind=real", "nodes"}) == 0);
  for (const auto& request : cli.script.Requests<v1::ListNodesRequest>("ListNodes"))
    CHECK(request.filter().labels().at("kind") == "real");
  CHECK(cli.script.Requests<v1::ListNodesRequest>("ListNodes").size() == 2);
  CHECK(cli.Run({"get", "jobs", "--limit", "5", "-o", "name"}) == 0);
  CHECK(cli.out() == "job/x\n");
  CHECK(cli.Run({"get", "jobs", "--sort", "name", "-o", "name"}) == 0);
  CHECK(cli.Run({"get", "hypernodes", "--kind", "network"}) == 0);
  CHECK(cli.script.Requests<v1::ListHyperNodesRequest>("ListHyperNodes")[0].kind() == "network");
  CHECK(cli.Run({"get", "job", "-o", "name", "x"}) == 0);  // a name is still one object
  CHECK(cli.script.Requests<v1::GetJobRequest>("GetJob").size() == 1);
}

TEST_CASE("an option accepts what -o name prints as its value") {
  Cli cli;
  cli.script.Answer("SubmitJobs", Submitted("n"));
  CHECK(cli.Run({"submit", "--queue", "queue/q", "--after", "job/x", "--after", "y", "--",
                 "true"}) == 0);
  const auto submit = cli.script.Requests<v1::SubmitJobsRequest>("SubmitJobs")[0];
  CHECK(submit.jobs(0).spec().queue() == "q");
  CHECK(submit.jobs(0).spec().dependencies(0).job() == "x");
  CHECK(submit.jobs(0).spec().dependencies(1).job() == "y");
  cli.script.Answer("ListJobs", OneJob());
  CHECK(cli.Run({"job", "history", "--queue", "queue/q"}) == 0);
  CHECK(cli.Run({"job", "list", "--queue", "queue/q", "--name", "job/x*"}) == 0);
  const auto lists = cli.script.Requests<v1::ListJobsRequest>("ListJobs");
  for (const auto& list : lists) CHECK(list.filter().queue() == "q");
  CHECK(lists[1].filter().name_pattern() == "x*");
  cli.script.Answer("CreateQueue", v1::Queue());
  CHECK(cli.Run({"queue", "create", "a", "--parent", "queue/q"}) == 0);
  const auto queue = cli.script.Requests<v1::CreateQueueRequest>("CreateQueue")[0].queue();
  CHECK(queue.spec().parent() == "q");
  cli.script.Answer("CreateHyperNode", v1::HyperNode());
  CHECK(cli.Run({"hypernode", "create", "r", "--tier", "1", "--node", "node/n1", "--child",
                 "hypernode/s"}) == 0);
  const auto made = cli.script.Requests<v1::CreateHyperNodeRequest>("CreateHyperNode")[0];
  CHECK(made.hyper_node().spec().members(0).exact() == "n1");
  CHECK(made.hyper_node().spec().members(1).exact() == "s");
  CHECK(cli.RunBare({"submit", "--queue", "job/q", "--", "true"}) == 2);
  CHECK(cli.err().find("\"job/q\" is a job; expected a queue: queue/q or q") != std::string::npos);
}

TEST_CASE("for a verb without a type the error suggests the full command") {
  Cli cli;
  CHECK(cli.RunBare({"info"}) == 2);
  CHECK(cli.err() == "berth: did you mean: berth cluster info\n");
  CHECK(cli.RunBare({"pause", "--for", "5m"}) == 2);
  CHECK(cli.err() == "berth: did you mean: berth cluster pause\n");
  CHECK(cli.RunBare({"get", "--help"}) == 2);
  CHECK(
      cli.err() ==
      "berth: \"get\" of what? berth job get, or berth queue get, or berth priority-class get, or "
      "berth node get, or berth hypernode get\n");
  CHECK(cli.RunBare({"bash"}) == 2);
  CHECK(cli.err().find("berth: unknown command \"bash\"") == 0);
  CHECK(cli.RunBare({"cancel", "x"}) == 2);
  CHECK(cli.err() == "berth: did you mean: berth job cancel x\n");
  CHECK(cli.RunBare({"get", "x"}) == 2);
  CHECK(cli.err() ==
        "berth: \"get\" of what? berth job get x, or berth queue get x, or berth "
        "priority-class get x, or berth node get x, or berth hypernode get x; TYPE/NAME works too: "
        "berth get job/x\n");
  CHECK(cli.RunBare({"cancel", "node/n1"}) == 2);
  CHECK(cli.err().find("unknown command \"cancel\"") != std::string::npos);
  CHECK(cli.RunBare({"jbo", "list"}) == 2);
  CHECK(cli.err() == "berth: unknown command \"jbo\"; did you mean \"job\"?\n");
}

TEST_CASE("for a number out of range the error states the range") {
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
