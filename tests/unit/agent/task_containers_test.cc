// What the agent makes of a launch with containers and host names.
#include "clients/agent/task_containers.h"

#include <catch2/catch.hpp>
#include <string>

#include "clients/agent/host_names.h"
#include "clients/agent/supervisor/id_swap.h"

namespace berth::testing {

TEST_CASE("a container's directory tells its task's") {
  const std::string task = "/var/lib/containers/tasks/7-0-1";
  CHECK(TaskDirectoryOf(task) == task);
  CHECK(ContainerNameOf(task).empty());
  const std::string own = ContainerDirectory(task, "side");
  CHECK(own == task + "/containers/side");
  CHECK(TaskDirectoryOf(own) == task);
  CHECK(ContainerNameOf(own) == "side");
  CHECK(NamedDirectory(task, "").value() == task);
  CHECK(NamedDirectory(task, "side").value() == own);
  for (const char* bad : {"..", ".", "a/b", "A", "-a", "a b"}) {
    INFO(bad);
    CHECK(!NamedDirectory(task, bad).ok());
  }
  CHECK(!NamedDirectory(task, std::string(64, 'a')).ok());
}

TEST_CASE("a container stands in place of the command") {
  v1::TaskLaunch task;
  task.set_job("j");
  task.add_command("main");
  task.add_env()->set_name("A");
  task.set_image("one");
  task.set_image_digest("sha256:one");
  task.set_terminal(true);
  task.mutable_watchdog();
  task.add_device_uuids("GPU-0");
  v1::Container& side = *task.add_containers();
  side.set_name("side");
  side.add_args("x");
  side.set_image("two");
  v1::ImageDigest& digest = *task.add_container_images();
  digest.set_image("two");
  digest.set_digest("sha256:two");
  const v1::TaskLaunch own = LaunchOf(task, side);
  CHECK(own.job() == "j");
  CHECK(own.command().empty());
  CHECK(own.args(0) == "x");
  CHECK(own.env().empty());
  CHECK(own.image() == "two");
  CHECK(own.image_digest() == "sha256:two");
  CHECK(own.device_uuids_size() == 1);
  CHECK(!own.terminal());
  CHECK(!own.has_watchdog());
  CHECK(own.containers().empty());
  ShortenContainers(&task);
  CHECK(task.containers(0).args().empty());
  CHECK(task.containers(0).name() == "side");
  CHECK(task.containers(0).image() == "two");
  CHECK(KindOf(side) == SupervisorSpec::kSidecar);
  CHECK(TimeoutMsOf(side) == 0);
  side.set_kind(v1::Container::INIT);
  CHECK(TimeoutMsOf(side) == 86'400'000);
}

TEST_CASE("hosts of tasks: those with a place, by index") {
  v1::TaskLaunch launch;
  v1::HostNames& ps = *launch.add_host_names();
  ps.add_names("ps-0");
  ps.add_names("ps");
  v1::HostNames& worker = *launch.add_host_names();
  worker.set_first_task(2);
  worker.add_names("worker-[0-3]");
  worker.add_names("worker-[0-3].job");
  v1::Start start;
  start.add_nodes("n1");
  start.add_node_addresses("10.0.0.1");
  start.add_nodes("n2");
  start.add_node_addresses("");
  start.set_master_address("10.0.0.9");
  for (const uint32_t place : {3u, 1u, 1u, 2u, 0u, 7u}) start.add_task_nodes(place);
  EnvironmentContext context;
  context.address = "10.0.0.3";
  CHECK(HostsText({.job_uid = 1, .task = 2}, launch, start, context) ==
        "10.0.0.9 ps-0 ps\n"
        "10.0.0.3 worker-0 worker-0.job\n"
        "n2 worker-1 worker-1.job\n");
  CHECK(HostsText({.job_uid = 1, .task = 0}, launch, v1::Start(), context) == "10.0.0.3 ps-0 ps\n");
}

TEST_CASE("two numbers change places") {
  using Ranges = std::vector<IdRange>;
  CHECK(SwapIds(0, 1000) ==
        Ranges{{0, 1000, 1}, {1, 1, 999}, {1000, 0, 1}, {1001, 1001, 4294966294u}});
  CHECK(SwapIds(8, 7) == Ranges{{0, 0, 7}, {7, 8, 1}, {8, 7, 1}, {9, 9, 4294967286u}});
  CHECK(SwapIds(5, 5) == Ranges{{0, 0, 4294967295u}});
  for (const auto& [one, other] : {std::pair{0u, 1u}, {1000u, 65534u}, {0u, 4294967294u}}) {
    uint64_t next = 0;  // nothing is left out, nothing is mapped twice
    for (const IdRange& range : SwapIds(one, other)) {
      CHECK(range.inside == next);
      next += range.count;
    }
    CHECK(next == 4294967295u);
  }
}

}  // namespace berth::testing
