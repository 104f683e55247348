// What berth __complete prints. The shells are tested in tests/integration/completion_test.py.
#include <catch2/catch.hpp>

#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

using Words = std::vector<std::string>;

v1::ListJobsResponse Jobs(const Words& names) {
  v1::ListJobsResponse jobs;
  for (const std::string& name : names) *jobs.add_jobs() = MakeJob(name, v1::JOB_RUNNING);
  return jobs;
}

// The texts without descriptions.
Words Complete(Cli& cli, Words words, bool with_server = true) {
  if (with_server) words.insert(words.begin(), {"--server", cli.server.address()});
  words.insert(words.begin(), "__complete");
  CHECK(cli.RunBare(words) == 0);
  CHECK(cli.err().empty());
  Words texts;
  std::istringstream lines(cli.out());
  for (std::string line; std::getline(lines, line);)
    texts.push_back(line.substr(0, line.find('\t')));
  return texts;
}

TEST_CASE("completion: commands and options come from the command tree") {
  Cli cli;
  CHECK(Complete(cli, {"jo"}) == Words{"job"});
  CHECK(Complete(cli, {"job", "ca"}) == Words{"cancel"});
  CHECK(Complete(cli, {"job", "list", "--qu"}) == Words{"--queue"});
  CHECK(Complete(cli, {"submit", "--outp"}) == Words{"--output"});
  CHECK(Complete(cli, {"submit", "--arr"}) == Words{"--array"});
  CHECK(Complete(cli, {"-o", "json", "queue", "op"}) == Words{"open"});
  CHECK(Complete(cli, {"-ojson", "queue", "op"}) == Words{"open"});
  CHECK(Complete(cli, {"completion", ""}) == Words{"bash", "zsh", "fish"});
  CHECK(Complete(cli, {"no-such", "x"}).empty());
  CHECK(Complete(cli, {"__compl"}).empty());
  CHECK(cli.RunBare({"__complete", "node", "cord"}) == 0);
  CHECK(cli.out().find("cordon\t") == 0);
}

TEST_CASE("completion: values, and files") {
  Cli cli;
  CHECK(Complete(cli, {"job", "list", "-o", "ya"}) == Words{"yaml"});
  CHECK(Complete(cli, {"job", "list", "--output=ya"}) == Words{"--output=yaml"});
  CHECK(Complete(cli, {"job", "logs", "--stream", "std"}) == Words{"stdout", "stderr"});
  CHECK(Complete(cli, {"submit", "dep"}) == Words{":files"});
  CHECK(Complete(cli, {"apply", "-f", "dep"}) == Words{":files"});
  CHECK(Complete(cli, {"submit", "--gpus", "1", "--", "tra"}) == Words{":files"});
}

TEST_CASE("completion: names come from the server that the command line selects") {
  Cli cli;
  cli.script.Answer("ListJobs", Jobs({"llama", "llava", "bert"}));
  v1::ListQueuesResponse queues;
  queues.add_queues()->set_name("research");
  cli.script.Answer("ListQueues", queues);
  v1::ListNodesResponse nodes;
  nodes.add_nodes()->set_name("n1");
  cli.script.Answer("ListNodes", nodes);
  CHECK(Complete(cli, {"job", "logs", "ll"}) == Words{"llama", "llava"});
  CHECK(Complete(cli, {"job", "get", "llama", "b"}) == Words{"bert"});
  CHECK(Complete(cli, {"job", "get", "job/b"}) == Words{"job/bert"});
  CHECK(Complete(cli, {"exec", "b"}) == Words{"bert"});
  CHECK(Complete(cli, {"submit", "--after", "b"}) == Words{"bert"});
  CHECK(Complete(cli, {"submit", "--queue", "r"}) == Words{"research"});
  CHECK(Complete(cli, {"submit", "--queue=r"}) == Words{"--queue=research"});
  CHECK(Complete(cli, {"queue", "shares", "r"}) == Words{"research"});
  CHECK(Complete(cli, {"node", "drain", ""}) == Words{"n1"});
  Complete(cli, {"job", "cancel", ""});
  CHECK(cli.script.Requests<v1::ListJobsRequest>("ListJobs").back().filter().active_only());
}

TEST_CASE("completion: the verb may come first") {
  Cli cli;
  cli.script.Answer("ListJobs", Jobs({"llama", "llava", "bert"}));
  CHECK(Complete(cli, {"get", "job", "ll"}) == Words{"llama", "llava"});
  CHECK(Complete(cli, {"get", "job", "llama", ""}) == Words{"llama", "llava", "bert"});
  CHECK(Complete(cli, {"describe", "jobs", "b"}) == Words{"bert"});
  CHECK(Complete(cli, {"describe", "job/b"}) == Words{"job/bert"});
  CHECK(Complete(cli, {"jobs", "logs", "b"}) == Words{"bert"});
  CHECK(Complete(cli, {"get", "jobs", "--sor"}) == Words{"--sort"});
  CHECK(Complete(cli, {"get", "jobs", "--sort", "na"}) == Words{"name"});
  CHECK(Complete(cli, {"bash", ""}).empty());
}

TEST_CASE("completion: jobs come newest first, and the server filters by prefix") {
  Cli cli;
  cli.script.Answer("ListJobs", Jobs({"llama", "llava"}));
  const auto request_for = [&](const std::string& word) {
    Complete(cli, {"job", "get", word});
    return cli.script.Requests<v1::ListJobsRequest>("ListJobs").back();
  };
  CHECK(request_for("ll").order() == v1::ListJobsRequest::NEWEST_FIRST);
  CHECK(request_for("ll").filter().name_pattern() == "ll*");
  CHECK(request_for("job/a-1").filter().name_pattern() == "a-1*");
  CHECK(request_for("").filter().name_pattern().empty());
  for (const char* none : {"LL", "l_", "l.", "l*"})
    CHECK(request_for(none).filter().name_pattern() == "");
  CHECK(request_for(std::string(128, 'a')).filter().name_pattern() == "");
}

TEST_CASE("completion: an unreachable server gives no names, within a second and silently") {
  Cli cli;
  const absl::Duration begin = cli.world.environment().clock->Steady();
  CHECK(Complete(cli, {"--server", "127.0.0.1:1", "job", "get", ""}, false).empty());
  CHECK(cli.world.environment().clock->Steady() - begin <= absl::Milliseconds(1500));
}

}  // namespace
}  // namespace berth
