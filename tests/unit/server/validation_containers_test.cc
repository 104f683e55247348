// Containers and host names of groups: which are accepted, and that they reach the agent whole.
#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "server/controllers/launch.h"
#include "server/convert/cold.h"
#include "server/validation/containers.h"
#include "server/validation/findings.h"
#include "server/validation/lifecycle.h"

namespace berth::testing {
namespace {

std::string ContainerProblem(const std::function<void(v1::Container&)>& change) {
  v1::TaskGroup group;
  v1::Container& container = *group.add_containers();
  container.set_name("side");
  container.add_command("run");
  change(container);
  Findings findings;
  const FieldPath root;
  CheckContainers(FieldPath(root, "g"), group, findings);
  return findings.ok() ? "" : std::string(findings.ToStatus().message());
}

std::string NameProblem(const std::function<void(v1::JobSpec&)>& change) {
  v1::JobSpec spec;
  for (const char* name : {"ps", "worker"}) {
    v1::TaskGroup& group = *spec.add_groups();
    group.set_name(name);
    group.set_replicas(2);
    group.add_host_names(std::string(name) + "-[0-1].job");
  }
  change(spec);
  Findings findings;
  const FieldPath root;
  CheckHostNames(FieldPath(root, "s"), spec, findings);
  return findings.ok() ? "" : std::string(findings.ToStatus().message());
}

bool Says(const std::string& text, const char* part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("containers: what they may have") {
  CHECK(ContainerProblem([](v1::Container&) {}).empty());
  CHECK(Says(ContainerProblem([](v1::Container& c) { c.set_name("A b"); }), "name"));
  CHECK(Says(ContainerProblem([](v1::Container& c) { c.clear_command(); }),
             "g.containers[0].command"));
  CHECK(ContainerProblem([](v1::Container& c) {
          c.clear_command();
          c.set_image("i:1");
        }).empty());
  CHECK(Says(ContainerProblem([](v1::Container& c) { c.set_image("../x"); }),
             "g.containers[0].image"));
  CHECK(Says(ContainerProblem([](v1::Container& c) { c.mutable_timeout()->set_seconds(5); }),
             "only of a container of kind INIT"));
  const auto step = [](int64_t seconds) {
    return ContainerProblem([&](v1::Container& c) {
      c.set_kind(v1::Container::INIT);
      c.mutable_timeout()->set_seconds(seconds);
    });
  };
  CHECK(step(1).empty());
  CHECK(Says(step(0), "timeout"));
  CHECK(Says(step(8 * 86400), "timeout"));
  CHECK(
      Says(ContainerProblem([](v1::Container& c) { c.add_env()->set_name("1"); }), "env[0].name"));
  CHECK(Says(ContainerProblem([](v1::Container& c) { c.add_volumes()->set_path("/proc"); }),
             "g.containers[0].volumes[0]"));
  CHECK(Says(
      ContainerProblem([](v1::Container& c) { c.set_kind(static_cast<v1::Container::Kind>(9)); }),
      "kind"));
}

TEST_CASE("containers: names differ, and there are not too many") {
  v1::TaskGroup group;
  for (int i = 0; i < 16; ++i) {
    group.add_containers()->set_name("c" + std::to_string(i));
    group.mutable_containers(i)->add_command("run");
  }
  const auto problem = [&] {
    Findings findings;
    const FieldPath root;
    CheckContainers(FieldPath(root, "g"), group, findings);
    return findings.ok() ? "" : std::string(findings.ToStatus().message());
  };
  CHECK(problem().empty());
  group.mutable_containers(3)->set_name("c2");
  CHECK(Says(problem(), "\"c2\" is the name of two containers"));
  group.mutable_containers(3)->set_name("c3");
  group.add_containers()->set_name("more");
  CHECK(Says(problem(), "at most 16 containers"));
}

TEST_CASE("volumes of one name may be read-only in one of the containers") {
  const auto with = [](const char* name) {
    return ContainerProblem([&](v1::Container& c) {
      v1::Volume& volume = *c.add_volumes();
      volume.set_path("/data");
      volume.set_read_only(true);
      volume.mutable_scratch()->set_name(name);
    });
  };
  CHECK(with("shared").empty());
  CHECK(Says(with(""), "nobody could write"));
  CHECK(Says(with("a/b"), "scratch.name"));
}

TEST_CASE("host names: as many as tasks, valid, and each once") {
  CHECK(NameProblem([](v1::JobSpec&) {}).empty());
  const auto with = [](const char* pattern) {
    return NameProblem([&](v1::JobSpec& s) { s.mutable_groups(0)->set_host_names(0, pattern); });
  };
  CHECK(Says(with("ps-[0-2]"), "as many names as replicas, 2, are 3"));
  CHECK(Says(with("ps-[0-"), "s.groups[0].host_names[0]"));
  CHECK(Says(with("p_s-[0-1]"), "is no name of a host"));
  CHECK(Says(with("worker-[0-1].job"), "is already a name of group ps"));
  CHECK(Says(with("[localhost,x]"), "s.groups[0].host_names[0]"));
  CHECK(Says(NameProblem([](v1::JobSpec& s) {
               for (int i = 0; i < 4; ++i)
                 s.mutable_groups(0)->add_host_names("x" + std::to_string(i) + "-[0-1]");
             }),
             "at most 4 entries"));
  CHECK(Says(NameProblem([](v1::JobSpec& s) { s.mutable_groups(1)->set_replicas(4095); }),
             "at most 4096 tasks"));
}

TEST_CASE("containers and host names need the new store format") {
  v1::JobSpec spec;
  spec.add_groups()->add_containers()->set_name("c");
  spec.mutable_groups(0)->add_host_names("a");
  for (const uint32_t format : {9u, 10u}) {
    Findings findings;
    const FieldPath root;
    CheckLifecycleFormat(FieldPath(root, "s"), spec, format, findings);
    const std::string text = findings.ok() ? "" : std::string(findings.ToStatus().message());
    CHECK(Says(text, "s.groups[0].containers") == (format == 9));
    CHECK((text.find("s.groups[0].host_names") != std::string::npos) == (format == 9));
  }
}

TEST_CASE("an agent gets containers, names of hosts, and where the tasks are") {
  v1::JobSpec spec;
  spec.add_groups()->set_name("ps");
  v1::TaskGroup& worker = *spec.add_groups();
  worker.add_host_names("worker-[0-1]");
  worker.add_containers()->set_name("side");
  worker.mutable_containers(0)->set_image("tools:1");
  v1::JobSpec read;
  REQUIRE(ParseCold(EncodeCold(spec), &read).ok());
  v1::JobSpec shown;
  for (int g = 0; g < 2; ++g) shown.add_groups();
  REQUIRE(MergeCold(EncodeCold(spec), &shown).ok());
  CHECK(shown.groups(1).SerializeAsString() == read.groups(1).SerializeAsString());
  CHECK(shown.groups(1).containers(0).SerializeAsString() ==
        spec.groups(1).containers(0).SerializeAsString());
  CHECK(shown.groups(1).host_names(0) == "worker-[0-1]");
  auto job = std::make_shared<LaunchJob>();
  job->group_names = {"ps", "worker"};
  job->group_sizes = {1, 2};
  job->group_rigid = {true, true};
  job->images["tools:1"] = "sha256:x";
  job->ranks.nodes = {NodeId{4}, NodeId{7}};
  job->ranks.node_members = {2, 1};
  job->ranks.tasks = {{.rank = 0, .node_rank = 0}, {.rank = 1, .node_rank = 1}, {}};
  LaunchOrder order{.kind = OrderKind::kPrepare, .task = 1, .group = 1, .job = job};
  const v1::TaskLaunch launch = ToMessage(order, read).prepare().launch();
  REQUIRE(launch.host_names_size() == 1);
  CHECK(launch.host_names(0).first_task() == 1);
  CHECK(launch.host_names(0).names(0) == "worker-[0-1]");
  REQUIRE(launch.containers_size() == 1);
  REQUIRE(launch.container_images_size() == 1);
  CHECK(launch.container_images(0).digest() == "sha256:x");
  order.kind = OrderKind::kStart;
  const v1::Start start = ToMessage(order, read).start();
  REQUIRE(start.task_nodes_size() == 3);
  CHECK(start.task_nodes(0) == 1);
  CHECK(start.task_nodes(1) == 2);
  CHECK(start.task_nodes(2) == 0);
  spec.mutable_groups(1)->clear_host_names();
  CHECK(ToMessage(order, spec).start().task_nodes().empty());
}

}  // namespace berth::testing
