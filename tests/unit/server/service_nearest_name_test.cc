// "Did you mean": bounded work, and no name that the caller may not see.
#include <catch2/catch.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/model/apply.h"
#include "server/access/nearest_name.h"
#include "support/nearest.h"
#include "tests/unit/server/service_access_world.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {
namespace {

using Jobs = v1::JobService::Stub;

std::set<std::string> NeighborsOf(const std::string& name) {
  std::set<std::string> all;
  ForEachNeighbor(name, [&](const std::string& other) { all.insert(other); });
  return all;
}

TEST_CASE("nearest name: neighbors are the names at one step, and few") {
  const std::set<std::string> all = NeighborsOf("reserch");
  CHECK(all.contains("research"));  // a letter inserted
  CHECK(all.contains("reserh"));    // left out
  CHECK(all.contains("reserck"));   // replaced
  CHECK_FALSE(all.contains("reserch"));
  CHECK_FALSE(all.contains("resserchs"));
  CHECK(NeighborsOf("gpu-taem").contains("gpu-team"));  // swapped
  for (const std::string& other : all) CHECK(EditDistance("reserch", other) <= 1);
  int calls = 0;
  ForEachNeighbor(std::string(kMaxGuessedName, 'a'), [&](const std::string&) { ++calls; });
  CHECK(calls <= 80 * static_cast<int>(kMaxGuessedName + 1));
  CHECK(NeighborsOf("").contains("a"));
}

// The message of GetJob for a name.
std::string GetJobMessage(Door& door, const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  v1::Job job;
  const absl::Status status = Call(*door.jobs, &Jobs::GetJob, request, &job);
  REQUIRE(absl::IsNotFound(status));
  return std::string(status.message());
}

std::string GetQueueMessage(Door& door, const std::string& name) {
  v1::GetQueueRequest request;
  request.set_name(name);
  v1::Queue queue;
  const absl::Status status =
      Call(*door.queues, &v1::QueueService::Stub::GetQueue, request, &queue);
  REQUIRE(absl::IsNotFound(status));
  return std::string(status.message());
}

TEST_CASE("nearest name: jobs and queues that the caller may see") {
  AccessWorld world;
  world.Grant("bob", "viewer", "team");
  const auto bob = world.User("bob"), eve = world.User("eve");
  CHECK(GetJobMessage(*bob, "trian") == "there is no job \"trian\"; did you mean \"train\"?");
  CHECK(GetJobMessage(*bob, "Train") == "there is no job \"Train\"; did you mean \"train\"?");
  CHECK(GetQueueMessage(*bob, "teem") == "there is no queue \"teem\"; did you mean \"team\"?");
  // Two steps away, found among few.
  CHECK(GetQueueMessage(*bob, "taem-q") ==
        "there is no queue \"taem-q\"; did you mean \"team-a\"?");
  CHECK(GetQueueMessage(*bob, "zzz") == "there is no queue \"zzz\"");
  // Hidden names are not suggested.
  CHECK(GetJobMessage(*bob, "their") == "there is no job \"their\"");
  CHECK(GetJobMessage(*eve, "trian") == "there is no job \"trian\"");
  CHECK(GetQueueMessage(*eve, "teem") == "there is no queue \"teem\"");
}

TEST_CASE("nearest name: a hidden job is answered as a name that nobody uses") {
  AccessWorld world;
  world.Grant("bob", "viewer", "team");
  world.Submit(world.root(), "thears", "team-a");  // beside "theirs", which bob may not see
  const auto bob = world.User("bob");
  const std::string hidden = GetJobMessage(*bob, "theirs");
  CHECK(hidden == "there is no job \"theirs\"; did you mean \"thears\"?");
  CHECK(GetJobMessage(*bob, "theors") == "there is no job \"theors\"; did you mean \"thears\"?");
}

TEST_CASE("nearest name: submits suggest queues that accept the caller's jobs") {
  AccessWorld world;
  world.Grant("bob", "submitter", "team");
  const auto bob = world.User("bob");
  const auto message = [&](Door& door, const std::string& queue) {
    v1::SubmitJobsRequest request;
    *request.add_jobs() = SmallJob("new", queue);
    v1::SubmitJobsResponse response;
    const absl::Status status = Call(*door.jobs, &Jobs::SubmitJobs, request, &response);
    REQUIRE_FALSE(status.ok());
    return std::string(status.message());
  };
  CHECK_THAT(message(world.root(), "othr"),
             Catch::Matchers::Contains("there is no queue \"othr\"; did you mean \"other\"?"));
  CHECK_THAT(message(*bob, "team-q"), Catch::Matchers::Contains("did you mean \"team-a\"?"));
  CHECK_THAT(message(*bob, "othr"), !Catch::Matchers::Contains("\"other\""));
}

TEST_CASE("nearest name: nodes and HyperNodes for those who may read the cluster") {
  AccessWorld world;
  v1::CreateHyperNodeRequest create;
  create.mutable_hyper_node()->set_name("rack-1");
  create.mutable_hyper_node()->mutable_spec()->set_tier(1);
  v1::HyperNode made;
  REQUIRE(
      Call(*world.root().hyper_nodes, &v1::HyperNodeService::Stub::CreateHyperNode, create, &made)
          .ok());
  v1::GetHyperNodeRequest get;
  get.set_name("rak-1");
  const absl::Status status =
      Call(*world.root().hyper_nodes, &v1::HyperNodeService::Stub::GetHyperNode, get, &made);
  CHECK(status.message() == "there is no HyperNode \"rak-1\"; did you mean \"rack-1\"?");
  const auto agent = world.Node("gpu-node-1");
  RunningAgent running(*agent, "gpu-node-1");
  v1::GetNodeRequest node;
  node.set_name("gpu-nod-1");
  v1::Node found;
  const absl::Status no_node =
      Call(*world.root().nodes, &v1::NodeService::Stub::GetNode, node, &found);
  CHECK(no_node.message() == "there is no node \"gpu-nod-1\"; did you mean \"gpu-node-1\"?");
}

TEST_CASE("nearest name: of many objects only neighbors are looked up") {
  ClusterState state;
  Caller caller;
  caller.administrator = true;
  Rights rights(std::make_shared<const Caller>(caller));
  for (uint32_t i = 1; i <= kMostCompared + 1; ++i) {
    QueueSpec spec;
    spec.name = absl::StrCat("queue-", i);
    REQUIRE(Apply(state, {absl::UnixEpoch(), QueueCreated{QueueId{i}, spec}}).ok());
  }
  CHECK(NoSuchQueue(state, rights, "quue-77").message() ==
        "there is no queue \"quue-77\"; did you mean \"queue-77\"?");
  CHECK(NoSuchQueue(state, rights, "quu-77").message() == "there is no queue \"quu-77\"");
  CHECK(NoSuchQueue(state, rights, std::string(65, 'q')).message() ==
        absl::StrCat("there is no queue \"", std::string(65, 'q'), "\""));
}

}  // namespace
}  // namespace berth::testing
