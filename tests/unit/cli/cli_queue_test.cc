// Queues on the command line.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

TEST_CASE("queues are listed as a tree") {
  Cli cli;
  v1::ListQueuesResponse list;
  for (const auto& entry : std::vector<std::pair<std::string, std::string>>{
           {"research", ""}, {"vision", "research"}, {"llm", "research"}, {"default", ""}}) {
    v1::Queue& queue = *list.add_queues();
    queue.set_name(entry.first);
    queue.mutable_spec()->set_parent(entry.second);
    queue.mutable_status()->set_state(v1::QUEUE_OPEN);
  }
  (*list.mutable_queues(0)->mutable_spec()->mutable_limit()->mutable_counts())["gpu"] = 64;
  list.mutable_queues(2)->mutable_status()->set_running_jobs(3);
  cli.script.Answer("ListQueues", list);
  CHECK(cli.Run({"queue", "list"}) == 0);
  CHECK(cli.out() ==
        "NAME      STATE  RUNNING  PENDING  HELD  ALLOCATED  LIMIT\n"
        "default   Open         0        0     0  -          -\n"
        "research  Open         0        0     0  -          gpu 64\n"
        "  llm     Open         3        0     0  -          -\n"
        "  vision  Open         0        0     0  -          -\n");
}

TEST_CASE("queue list --unsynced accepts an answer that a crash may undo, with a warning") {
  Cli cli;
  v1::ListQueuesResponse list;
  list.add_queues()->set_name("q");
  cli.script.Answer("ListQueues", list);
  CHECK(cli.Run({"--unsynced", "queue", "list"}) == 0);
  CHECK(cli.err().empty());
  cli.script.slow_disk = true;
  CHECK(cli.Run({"--unsynced", "queue", "list"}) == 0);
  CHECK(cli.out().find("q ") != std::string::npos);
  CHECK(cli.err().find("a crash may undo it") != std::string::npos);
  CHECK(cli.Run({"queue", "list"}) == 0);
  CHECK(cli.err().empty());
}

TEST_CASE("the wide list of queues shows how they share") {
  Cli cli;
  v1::ListQueuesResponse list;
  v1::Queue& queue = *list.add_queues();
  queue.set_name("q");
  v1::QueueSpec& spec = *queue.mutable_spec();
  (*spec.mutable_deserved()->mutable_counts())["gpu"] = 32;
  (*spec.mutable_guarantee()->mutable_counts())["gpu"] = 8;
  spec.set_weight(3);
  spec.set_priority(-1);
  spec.set_reclaimable(false);
  spec.set_order(v1::QueueSpec::FIFO_STRICT);
  spec.set_user_fairness(v1::QueueSpec::DRF);
  spec.set_strategy(v1::SPREAD);
  cli.script.Answer("ListQueues", list);
  CHECK(cli.Run({"queue", "list", "-o", "wide"}) == 0);
  for (const char* words : {"DESERVED  GUARANTEE  WEIGHT  PRIORITY  RECLAIMABLE  ORDER",
                            "gpu 32    gpu 8           3        -1  no           FifoStrict"}) {
    INFO(cli.out());
    CHECK(cli.out().find(words) != std::string::npos);
  }
}

TEST_CASE("queue: max tasks and defaults are sent and described") {
  Cli cli;
  v1::Queue queue;
  queue.set_name("q");
  cli.script.Answer("CreateQueue", queue);
  CHECK(cli.Run({"queue", "create", "q", "--max-tasks", "500", "--defaults",
                 "{cpu: 500m, memory: 2Gi, walltime: 1h}"}) == 0);
  const v1::QueueSpec spec =
      cli.script.Requests<v1::CreateQueueRequest>("CreateQueue")[0].queue().spec();
  CHECK(spec.max_tasks() == 500);
  CHECK(spec.defaults().cpu_millis() == 500);
  CHECK(spec.defaults().memory_bytes() == int64_t{2} << 30);
  CHECK(spec.defaults().walltime().seconds() == 3600);
  *queue.mutable_spec() = spec;
  queue.mutable_status()->set_active_tasks(37);
  cli.script.Answer("GetQueue", queue);
  CHECK(cli.Run({"queue", "describe", "q"}) == 0);
  INFO(cli.out());
  for (const char* text :
       {"37 of jobs that have not ended", "500\n", "cpu 0.5, memory 2Gi, walltime 1h"}) {
    CHECK(cli.out().find(text) != std::string::npos);
  }
}

TEST_CASE("queue create and update send the given values") {
  Cli cli;
  v1::Queue queue;
  queue.set_name("q");
  cli.script.Answer("CreateQueue", queue);
  cli.script.Answer("UpdateQueue", queue);
  CHECK(cli.Run({"queue", "create", "q", "--parent", "p", "--limit", "gpu=64", "--limit",
                 "memory=1Ti", "--max-jobs", "9"}) == 0);
  CHECK(cli.out() == "queue/q created\n");
  const v1::QueueSpec spec =
      cli.script.Requests<v1::CreateQueueRequest>("CreateQueue")[0].queue().spec();
  CHECK(spec.parent() == "p");
  CHECK(spec.limit().counts().at("gpu") == 64);
  CHECK(spec.limit().memory_bytes() == int64_t{1} << 40);
  CHECK(spec.max_jobs() == 9);
  CHECK(cli.Run({"queue", "update", "q", "--max-running-jobs", "3"}) == 0);
  CHECK(cli.script.Requests<v1::UpdateQueueRequest>("UpdateQueue")[0].update_mask().paths(0) ==
        "spec.max_running_jobs");
  CHECK(cli.Run({"queue",       "update",
                 "q",           "--deserved",
                 "gpu=32",      "--guarantee",
                 "none=",       "--weight",
                 "0",           "--priority",
                 "-2",          "--reclaimable",
                 "false",       "--order",
                 "fifo-strict", "--user-fairness",
                 "drf",         "--strategy",
                 "spread",      "--surplus-only",
                 "true",        "--device-strategy",
                 "binpack",     "--slice",
                 "5m"}) == 0);
  const auto update = cli.script.Requests<v1::UpdateQueueRequest>("UpdateQueue")[1];
  const v1::QueueSpec& changed = update.queue().spec();
  CHECK(absl::StrJoin(update.update_mask().paths(), " ") ==
        "spec.deserved spec.guarantee spec.weight spec.priority spec.reclaimable spec.order "
        "spec.user_fairness spec.strategy spec.device_strategy spec.surplus_only spec.slice");
  CHECK(changed.deserved().counts().at("gpu") == 32);
  CHECK(changed.guarantee().counts().empty());
  CHECK(changed.has_weight());
  CHECK(changed.weight() == 0);
  CHECK(changed.priority() == -2);
  CHECK_FALSE(changed.reclaimable());
  CHECK(changed.order() == v1::QueueSpec::FIFO_STRICT);
  CHECK(changed.user_fairness() == v1::QueueSpec::DRF);
  CHECK(changed.strategy() == v1::SPREAD);
  CHECK(changed.device_strategy() == v1::BINPACK);
  CHECK(changed.surplus_only());
  CHECK(changed.slice().seconds() == 300);
  CHECK(cli.Run({"queue", "update", "q", "--order", "random"}) == 4);
  CHECK(cli.Run({"queue", "update", "q"}) == 2);
  CHECK(cli.Run({"queue", "create", "q", "--limit", "memory=lots"}) == 4);
}

v1::ListQueueSharesResponse ThreeShares() {
  v1::ListQueueSharesResponse response;
  v1::QueueShares& research = *response.add_shares();
  research.set_queue("research");
  research.mutable_allocated()->set_cpu_millis(8000);
  research.mutable_fair_share()->set_cpu_millis(8000);
  research.mutable_demand()->set_cpu_millis(8000);
  (*research.mutable_allocated()->mutable_counts())["gpu"] = 12;
  (*research.mutable_fair_share()->mutable_counts())["gpu"] = 12;
  (*research.mutable_demand()->mutable_counts())["gpu"] = 12;
  (*research.mutable_deserved()->mutable_counts())["gpu"] = 16;
  (*research.mutable_lent()->mutable_counts())["gpu"] = 4;
  (*research.mutable_limit()->mutable_counts())["gpu"] = 32;
  research.set_dominant_resource("gpu");
  research.set_dominant_share(0.75);
  research.add_why("fair share of cpu, gpu bounded by demand");
  research.add_why("lends gpu");
  v1::QueueShares& llm = *response.add_shares();
  llm.set_queue("llm");
  llm.set_parent("research");
  (*llm.mutable_allocated()->mutable_counts())["gpu"] = 12;
  (*llm.mutable_guarantee()->mutable_counts())["gpu"] = 2;
  (*llm.mutable_deserved()->mutable_counts())["gpu"] = 8;
  (*llm.mutable_fair_share()->mutable_counts())["gpu"] = 12;
  (*llm.mutable_demand()->mutable_counts())["gpu"] = 12;
  (*llm.mutable_borrowed()->mutable_counts())["gpu"] = 4;
  llm.set_dominant_resource("gpu");
  llm.set_dominant_share(-1);
  llm.add_why("borrows gpu");
  response.add_shares()->set_queue("vision");
  return response;
}

TEST_CASE("queue describe shows that starts of its jobs are refused") {
  v1::Queue queue;
  queue.set_name("research");
  Cli well;
  well.script.Answer("GetQueue", queue);
  CHECK(well.Run({"queue", "describe", "research"}) == 0);
  CHECK(well.out().find("Conditions") == std::string::npos);
  v1::QueueCondition& condition = *queue.mutable_status()->add_conditions();
  condition.set_kind(v1::QueueCondition::STARTS_REFUSED);
  condition.set_count(6);
  condition.set_detail("the last 6 starts of its jobs were refused, and none has run since");
  Cli cli;
  cli.script.Answer("GetQueue", queue);
  CHECK(cli.Run({"queue", "describe", "research"}) == 0);
  INFO(cli.out());
  CHECK(cli.out().find("the last 6 starts of its jobs were refused") != std::string::npos);
  CHECK(cli.out().find("Conditions:") != std::string::npos);
}

TEST_CASE("queue shares: a tree with a row for each resource") {
  Cli cli;
  cli.script.Answer("ListQueueShares", ThreeShares());
  CHECK(cli.Run({"queue", "shares"}) == 0);
  CHECK(cli.out() ==
        "QUEUE     RESOURCE  ALLOCATED  GUARANTEE  DESERVED  FAIR SHARE  DEMAND  BORROWED  LENT  "
        "WHY\n"
        "research  cpu               8          -         -           8       8         -     -  "
        "fair share of cpu, gpu bounded by demand; lends gpu\n"
        "          gpu              12          -        16          12      12         -     4\n"
        "  llm     gpu              12          2         8          12      12         4     -  "
        "borrows gpu\n"
        "vision    -                 -          -         -           -       -         -     -  "
        "-\n");
  CHECK(cli.script.Requests<v1::ListQueueSharesRequest>("ListQueueShares")[0].queue().empty());
  CHECK(cli.Run({"queue", "shares", "research", "-o", "wide"}) == 0);
  for (const char* words : {"LIMIT  DOMINANT", "-  gpu 75%", "gpu, entitled to none"}) {
    INFO(cli.out());
    CHECK(cli.out().find(words) != std::string::npos);
  }
  CHECK(cli.script.Requests<v1::ListQueueSharesRequest>("ListQueueShares")[1].queue() ==
        "research");
}

TEST_CASE("queue shares in the other formats") {
  Cli cli;
  cli.script.Answer("ListQueueShares", ThreeShares());
  CHECK(cli.Run({"queue", "shares", "-o", "name"}) == 0);
  CHECK(cli.out() == "queue/research\nqueue/llm\nqueue/vision\n");
  CHECK(cli.Run({"queue", "shares", "-o", "json"}) == 0);
  CHECK(cli.out().find("\"dominantShare\": 0.75") != std::string::npos);
  CHECK(cli.Run({"queue", "shares", "-o", "yaml"}) == 0);
  CHECK(cli.out().find("queue: research\n") != std::string::npos);
  Cli unknown;
  unknown.script.Answer("ListQueueShares", absl::NotFoundError("there is no queue \"x\""));
  CHECK(unknown.Run({"queue", "shares", "x"}) == 3);
  Cli none;
  none.script.Answer("ListQueueShares", v1::ListQueueSharesResponse());
  CHECK(none.Run({"queue", "shares"}) == 0);
  CHECK(none.out().empty());
  CHECK(none.err() == "no queues\n");
}

}  // namespace
}  // namespace berth
