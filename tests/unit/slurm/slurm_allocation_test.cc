// What jobs and steps get.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "clients/slurm/allocation.h"
#include "clients/slurm/option_tables.h"
#include "clients/slurm/step_job.h"
#include "clients/slurm/submit.h"

namespace berth {
namespace {

struct World {
  config::v1::SlurmConfig config;
  cli::v1::SlurmBatch batch;

  absl::StatusOr<v1::Job> Job(const std::vector<std::string>& words) {
    const AllocationContext context{config, absl::FromUnixSeconds(0), absl::UTCTimeZone()};
    auto arguments = ParseSlurmArguments(SbatchCommand(), words);
    if (!arguments.ok()) return arguments.status();
    auto request = ReadAllocation(*arguments, context);
    if (!request.ok()) return request.status();
    if (absl::Status status = CompleteSizes(&*request); !status.ok()) return status;
    const auto name_of = [](const std::string& number) -> absl::StatusOr<std::string> {
      return "job-" + number;
    };
    return JobOf(*request, context, "ada", name_of, &batch);
  }
  std::string Refusal(const std::vector<std::string>& words) {
    return std::string(Job(words).status().message());
  }
};

TEST_CASE("slurm allocation: a task of Berth for each node, with what its tasks need") {
  World world;
  const auto job = world.Job({"-N2", "--ntasks-per-node=4", "-c2", "--mem-per-cpu=1G",
                              "--gpus-per-task=a100:1", "-t", "1:00:00"});
  REQUIRE(job.ok());
  const v1::TaskGroup& group = job->spec().groups(0);
  CHECK(group.replicas() == 2);
  CHECK(group.affinity().apart_from_groups(0) == "node");
  CHECK(group.resources().cpu_millis() == 8000);
  CHECK(group.resources().memory_bytes() == int64_t{8} << 30);
  CHECK(group.resources().devices(0).count() == 4);
  CHECK(group.resources().devices(0).model(0) == "a100");
  CHECK(job->spec().min_success() == 1);
  CHECK(job->spec().walltime().seconds() == 3600);
  CHECK(job->spec().user() == "ada");
  CHECK(world.batch.tasks() == 8);
}

TEST_CASE("slurm allocation: numbers of nodes and tasks") {
  World world;
  const auto sizes = [&](const std::vector<std::string>& words) {
    if (const auto job = world.Job(words); !job.ok()) return std::string(job.status().message());
    return absl::StrCat(world.batch.nodes(), " nodes, ", world.batch.tasks(), " tasks, ",
                        world.batch.tasks_per_node());
  };
  CHECK(sizes({}) == "1 nodes, 1 tasks, 1");
  CHECK(sizes({"-N3"}) == "3 nodes, 3 tasks, 1");
  CHECK(sizes({"-n5", "--ntasks-per-node=2"}) == "3 nodes, 5 tasks, 2");
  CHECK(sizes({"-N3", "-n5"}) == "3 nodes, 5 tasks, 2");
  CHECK(sizes({"-N2-4"}) == "2 nodes, 2 tasks, 1");
  CHECK(absl::StrContains(sizes({"-N2", "-n5", "--ntasks-per-node=2"}),
                          "5 tasks need 3 on each of 2 nodes"));
  CHECK(TasksOfNodes(5, 2, 3) == std::vector<int>{2, 2, 1});
  CHECK(TasksOfNodes(5, 4, 2) == std::vector<int>{4, 1});
}

TEST_CASE("slurm allocation: tasks without nodes get the fewest that hold them") {
  std::vector<v1::Node> nodes(3);
  for (v1::Node& node : nodes) node.mutable_inventory()->set_cpu_millis(4000);
  nodes[2].mutable_inventory()->set_cpu_millis(8000);
  const auto spread = [&](int tasks, int cpus) {
    AllocationRequest request{.tasks = tasks, .cpus_per_task = cpus};
    if (!SpreadTasks(nodes, &request).ok()) return std::string("none");
    return absl::StrCat(request.nodes, " x ", request.tasks_per_node);
  };
  CHECK(spread(8, 1) == "1 x 8");
  CHECK(spread(9, 1) == "3 x 3");
  CHECK(spread(12, 1) == "3 x 4");
  CHECK(spread(13, 1) == "none");
  CHECK(spread(2, 8) == "none");
  CHECK(spread(3, 4) == "3 x 1");
}

TEST_CASE("slurm allocation: partitions, qualities of service and features by the configuration") {
  World world;
  auto* partition = world.config.add_partitions();
  partition->set_name("gpu");
  partition->set_queue("research");
  (*partition->mutable_node_labels())["pool"] = "gpu";
  partition->mutable_max_time()->set_seconds(3600);
  auto* qos = world.config.add_qos();
  qos->set_name("high");
  qos->set_priority_class("urgent");
  (*world.config.mutable_features())["ib"] = "net=ib";
  const auto job = world.Job({"-q", "high", "-C", "ib", "-x", "n[1-2]"});
  REQUIRE(job.ok());
  CHECK(job->spec().queue() == "research");
  CHECK(job->spec().priority_class() == "urgent");
  CHECK(job->spec().walltime().seconds() == 3600);
  const v1::NodeSelector& selector = job->spec().groups(0).node_selector();
  CHECK(selector.match_labels().at("pool") == "gpu");
  CHECK(selector.match_labels().at("net") == "ib");
  CHECK(selector.exclude_nodes_size() == 2);
  CHECK(absl::StrContains(world.Refusal({"-p", "cpu"}), "there is no \"cpu\""));
  CHECK(absl::StrContains(world.Refusal({"-t", "61"}), "at most 01:00:00 in partition gpu"));
  CHECK(absl::StrContains(world.Refusal({"-C", "x"}), "there is no feature \"x\""));
  CHECK(absl::StrContains(world.Refusal({"-q", "x"}), "there is no \"x\""));
}

TEST_CASE("slurm allocation: accounts with queues go before partitions, and a QOS before them") {
  World world;
  world.config.add_partitions()->set_name("gpu");
  CHECK(world.Job({"-A", "anything"})->spec().queue() == "gpu");  // only a label
  world.config.add_accounts()->set_name("physics");
  auto* lab = world.config.add_accounts();
  lab->set_name("ML_Lab");
  lab->set_queue("ml-lab");
  CHECK(world.Job({"-A", "physics"})->spec().queue() == "physics");
  CHECK(world.Job({"-A", "ML_Lab"})->spec().queue() == "ml-lab");
  CHECK(absl::StrContains(world.Refusal({"-A", "x"}), "--account: there is no \"x\""));
  CHECK(absl::StrContains(world.Refusal({}), "--account: name one"));
  auto* qos = world.config.add_qos();
  qos->set_name("spare");
  qos->set_queue("spare");
  CHECK(world.Job({"-A", "physics", "-q", "spare"})->spec().queue() == "spare");
  world.config.mutable_partitions(0)->set_queue("common");
  CHECK(world.Job({})->spec().queue() == "common");
  CHECK(world.Job({"-A", "physics"})->spec().queue() == "physics");
}

TEST_CASE("slurm allocation: other options") {
  World world;
  const auto job =
      world.Job({"--array=1-9:2%3", "-d", "afterok:1:2,afternotok:3", "--nice=7", "-H",
                 "--no-requeue", "--gres=gpu:v100:2,shard:4", "--comment=c", "-J", "a b"});
  REQUIRE(job.ok());
  CHECK(job->spec().array().indexes() == "1-9:2");
  CHECK(job->spec().array().parallelism() == 3);
  CHECK(job->spec().dependencies_size() == 3);
  CHECK(job->spec().dependencies(2).job() == "job-3");
  CHECK(job->spec().priority() == -7);
  CHECK(job->spec().suspended());
  CHECK(job->spec().policies_size() == 3);
  CHECK(job->spec().groups(0).resources().extended().at("shard") == 4);
  CHECK(job->spec().annotations().at("slurm/comment") == "c");
  for (const std::vector<std::string>& words : {std::vector<std::string>{"-d", "singleton"},
                                                {"-d", "afterok"},
                                                {"-d", "afterok:1?afterok:2"},
                                                {"--mem=0"},
                                                {"--mem=1G", "--mem-per-cpu=1G"},
                                                {"--gpus=2", "--gres=gpu:1"},
                                                {"-N2", "-G3"},
                                                {"--cpus-per-gpu=2"},
                                                {"-n", "0"},
                                                {"--array=x"},
                                                {"--signal=x"},
                                                {"-t", "x"},
                                                {"--begin=x"},
                                                {"-M", "other"}}) {
    INFO(words.back());
    CHECK_FALSE(world.Job(words).ok());
  }
}

TEST_CASE("slurm steps: places in the job, and what others hold") {
  cli::v1::SlurmBatch batch;
  batch.set_tasks(6);
  batch.set_tasks_per_node(2);
  batch.set_cpus_per_task(1);
  const auto place = [&](const StepRequest& request, const std::vector<int>& held) {
    const auto placed = PlaceStep(request, batch, 3, held);
    if (!placed.ok()) return std::string("never");
    return placed->has_value() ? absl::StrJoin(**placed, " ") : std::string("wait");
  };
  CHECK(place({}, {0, 0, 0}) == "2 2 2");
  CHECK(place({}, {0, 1, 0}) == "wait");
  CHECK(place({.tasks = 1}, {2, 1, 0}) == "0 1 0");
  CHECK(place({.tasks = 1}, {2, 2, 2}) == "wait");
  CHECK(place({.tasks = 4}, {0, 0, 0}) == "2 1 1");
  CHECK(place({.nodes = 1}, {2, 0, 0}) == "0 1 0");
  CHECK(place({.tasks = 2, .nodes = 1}, {1, 0, 0}) == "0 2 0");
  CHECK(place({.tasks = 7}, {0, 0, 0}) == "never");
  CHECK(place({.tasks = 1, .cpus_per_task = 3}, {0, 0, 0}) == "never");
  CHECK(place({.nodes = 4}, {0, 0, 0}) == "never");
}

TEST_CASE("slurm export: which variables a job gets") {
  const Variables own = {{"A", "1"}, {"B", "2"}, {"SLURM_JOB_ID", "5"}, {"BERTH_SERVER", "x"}};
  CHECK(*ExportedVariables("", own) == Variables{{"A", "1"}, {"B", "2"}});
  CHECK(ExportedVariables("NONE", own)->empty());
  CHECK(*ExportedVariables("B,C=3,D", own) == Variables{{"B", "2"}, {"C", "3"}});
  CHECK(*ExportedVariables("ALL,A=9", own) == Variables{{"A", "9"}, {"B", "2"}});
}

}  // namespace
}  // namespace berth
