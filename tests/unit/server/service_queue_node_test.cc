// QueueService, NodeService, ClusterService and gRPC health over real gRPC.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/unit/server/service_world.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {
namespace {

using Queues = v1::QueueService::Stub;
using Nodes = v1::NodeService::Stub;

absl::Status Create(ServiceWorld& world, const v1::CreateQueueRequest& request, v1::Queue* queue) {
  return Call(*world.queues, &Queues::CreateQueue, request, queue);
}

v1::CreateQueueRequest NewQueue(const std::string& name, const std::string& parent = "") {
  v1::CreateQueueRequest request;
  request.mutable_queue()->set_name(name);
  request.mutable_queue()->mutable_spec()->set_parent(parent);
  return request;
}

absl::Status Delete(ServiceWorld& world, const std::string& name) {
  v1::DeleteQueueRequest request;
  request.set_name(name);
  v1::DeleteQueueResponse response;
  return Call(*world.queues, &Queues::DeleteQueue, request, &response);
}

}  // namespace

TEST_CASE("service: queues are created, listed by name, changed and deleted") {
  ServiceWorld world;
  v1::CreateQueueRequest create = NewQueue("research");
  create.mutable_queue()->mutable_spec()->mutable_limit()->set_cpu_millis(8000);
  (*create.mutable_queue()->mutable_spec()->mutable_limit()->mutable_counts())["gpu"] = 64;
  v1::Queue queue;
  REQUIRE(Create(world, create, &queue).ok());
  CHECK(queue.spec().limit().counts().at("gpu") == 64);
  CHECK(queue.status().state() == v1::QUEUE_OPEN);
  CHECK(absl::IsAlreadyExists(Create(world, create, &queue)));
  world.CreateQueue("llm", "research");
  world.CreateQueue("audio", "research");

  v1::ListQueuesRequest list;
  list.set_page_size(2);
  v1::ListQueuesResponse page;
  REQUIRE(Call(*world.queues, &Queues::ListQueues, list, &page).ok());
  REQUIRE(page.queues_size() == 2);
  CHECK(page.queues(0).name() == "audio");
  CHECK(page.queues(1).name() == "default");  // created with the store
  list.set_page_token(page.next_page_token());
  page.Clear();
  REQUIRE(Call(*world.queues, &Queues::ListQueues, list, &page).ok());
  REQUIRE(page.queues_size() == 2);
  CHECK(page.queues(0).name() == "llm");
  CHECK(page.queues(1).status().children_size() == 2);
  CHECK(page.next_page_token().empty());

  CHECK(absl::IsFailedPrecondition(Delete(world, "research")));
  CHECK(Delete(world, "llm").ok());
  CHECK(absl::IsNotFound(Delete(world, "llm")));
  CHECK(absl::IsFailedPrecondition(Delete(world, "root")));
}

TEST_CASE("service: a queue is updated by mask and etag") {
  ServiceWorld world;
  world.CreateQueue("q");
  v1::GetQueueRequest get;
  get.set_name("q");
  v1::Queue queue;
  REQUIRE(Call(*world.queues, &Queues::GetQueue, get, &queue).ok());
  v1::UpdateQueueRequest update;
  update.mutable_queue()->set_name("q");
  update.mutable_queue()->set_etag(queue.etag());
  update.mutable_queue()->mutable_spec()->set_max_jobs(5);
  update.mutable_queue()->mutable_spec()->set_max_running_jobs(9);
  update.mutable_update_mask()->add_paths("spec.max_jobs");
  REQUIRE(Call(*world.queues, &Queues::UpdateQueue, update, &queue).ok());
  CHECK(queue.spec().max_jobs() == 5);
  CHECK(queue.spec().max_running_jobs() == 0);  // not in the mask
  update.mutable_queue()->mutable_spec()->set_max_jobs(6);
  CHECK(absl::IsAborted(Call(*world.queues, &Queues::UpdateQueue, update, &queue)));
  update.mutable_queue()->clear_etag();
  update.mutable_update_mask()->set_paths(0, "spec.parent");
  CHECK(absl::IsUnimplemented(Call(*world.queues, &Queues::UpdateQueue, update, &queue)));
}

TEST_CASE("service: a queue's shares are stored, changed by mask, and checked against its limit") {
  ServiceWorld world;
  v1::CreateQueueRequest create = NewQueue("q");
  v1::QueueSpec& spec = *create.mutable_queue()->mutable_spec();
  (*spec.mutable_limit()->mutable_counts())["gpu"] = 64;
  (*spec.mutable_deserved()->mutable_counts())["gpu"] = 32;
  (*spec.mutable_guarantee()->mutable_counts())["gpu"] = 8;
  spec.set_weight(0);
  spec.set_priority(-3);
  spec.set_reclaimable(false);
  spec.set_order(v1::QueueSpec::FIFO_STRICT);
  spec.set_user_fairness(v1::QueueSpec::DRF);
  spec.set_strategy(v1::COLOCATE);
  v1::Queue queue;
  REQUIRE(Create(world, create, &queue).ok());
  world.Restart();  // read from the store
  v1::GetQueueRequest get;
  get.set_name("q");
  REQUIRE(Call(*world.queues, &Queues::GetQueue, get, &queue).ok());
  CHECK(queue.spec().SerializeAsString() == spec.SerializeAsString());

  v1::UpdateQueueRequest update;
  update.mutable_queue()->set_name("q");
  update.mutable_queue()->mutable_spec()->set_weight(7);
  update.mutable_queue()->mutable_spec()->set_order(v1::QueueSpec::FIFO_SKIP);
  update.mutable_update_mask()->add_paths("spec.weight");
  REQUIRE(Call(*world.queues, &Queues::UpdateQueue, update, &queue).ok());
  CHECK(queue.spec().weight() == 7);
  CHECK(queue.spec().order() == v1::QueueSpec::FIFO_STRICT);  // not in the mask
  // A limit below the deserved resources, which the request does not contain.
  update.mutable_update_mask()->set_paths(0, "spec.limit");
  (*update.mutable_queue()->mutable_spec()->mutable_limit()->mutable_counts())["gpu"] = 16;
  const absl::Status low = Call(*world.queues, &Queues::UpdateQueue, update, &queue);
  CHECK(absl::IsInvalidArgument(low));
  CHECK(low.message() == "queue.spec.deserved: gpu: 32 is more than the limit of 16");
}

TEST_CASE("service: invalid queues are refused") {
  ServiceWorld world;
  v1::Queue queue;
  CHECK(absl::IsInvalidArgument(Create(world, NewQueue("Bad Name"), &queue)));
  CHECK(absl::IsInvalidArgument(Create(world, NewQueue("root"), &queue)));
  CHECK(absl::IsNotFound(Create(world, NewQueue("a", "nowhere"), &queue)));
  v1::CreateQueueRequest wrong = NewQueue("a");
  v1::QueueSpec& spec = *wrong.mutable_queue()->mutable_spec();
  spec.set_weight(65'536);
  spec.set_priority(-1'000'001);
  (*spec.mutable_limit()->mutable_counts())["gpu"] = 8;
  (*spec.mutable_deserved()->mutable_counts())["gpu"] = 9;
  (*spec.mutable_guarantee()->mutable_counts())["gpu"] = 10;
  const absl::Status all = Create(world, wrong, &queue);
  CHECK(absl::IsInvalidArgument(all));
  for (const char* words : {"queue.spec.weight: must be 0..65535, is 65536",
                            "queue.spec.priority: must be -1000000..1000000, is -1000001",
                            "queue.spec.deserved: gpu: 9 is more than the limit of 8",
                            "queue.spec.guarantee: gpu: 10 is more than the limit of 8"}) {
    CHECK(std::string(all.message()).find(words) != std::string::npos);
  }
  v1::CreateQueueRequest negative = NewQueue("a");
  negative.mutable_queue()->mutable_spec()->mutable_limit()->set_memory_bytes(-1);
  CHECK(absl::IsInvalidArgument(Create(world, negative, &queue)));
  v1::CreateQueueRequest kinds = NewQueue("a");
  for (int i = 0; i < 13; ++i) {
    (*kinds.mutable_queue()->mutable_spec()->mutable_limit()->mutable_counts())[absl::StrCat(
        "kind", i)] = 1;
  }
  REQUIRE(Create(world, kinds, &queue).ok());
  v1::CreateQueueRequest more = NewQueue("b");
  (*more.mutable_queue()->mutable_spec()->mutable_limit()->mutable_counts())["another"] = 1;
  CHECK(absl::IsResourceExhausted(Create(world, more, &queue)));
  // Jobs have the same bound.
  v1::SubmitJobsRequest submit;
  *submit.add_jobs() = SmallJob("j", "a");
  (*submit.mutable_jobs(0)
        ->mutable_spec()
        ->mutable_groups(0)
        ->mutable_resources()
        ->mutable_extended())["another"] = 1;
  v1::SubmitJobsResponse response;
  CHECK(absl::IsResourceExhausted(world.Submit(submit, &response)));
}

TEST_CASE("service: a queue with jobs cannot become a parent or be deleted") {
  ServiceWorld world;
  world.CreateQueue("q");
  world.MustSubmit({"a"});
  v1::Queue queue;
  CHECK(absl::IsFailedPrecondition(Create(world, NewQueue("child", "q"), &queue)));
  const absl::Status full = Delete(world, "q");
  CHECK(absl::IsFailedPrecondition(full));
  CHECK(full.message() == "queue \"q\" has 1 jobs (1 not ended); delete them first");
}

TEST_CASE("service: a repeated request id creates one queue") {
  ServiceWorld world;
  v1::CreateQueueRequest create = NewQueue("q");
  create.set_request_id("id");
  v1::Queue first, again;
  REQUIRE(Create(world, create, &first).ok());
  REQUIRE(Create(world, create, &again).ok());
  CHECK(first.SerializeAsString() == again.SerializeAsString());
  create.mutable_queue()->set_name("other");
  CHECK(absl::IsAlreadyExists(Create(world, create, &again)));
}

TEST_CASE("service: closed queues hold their jobs, and opened queues release them") {
  ServiceWorld world;
  world.CreateQueue("q");
  world.MustSubmit({"a"});
  v1::CloseQueueRequest close;
  close.set_name("q");
  v1::Queue queue;
  REQUIRE(Call(*world.queues, &Queues::CloseQueue, close, &queue).ok());
  REQUIRE(Call(*world.queues, &Queues::CloseQueue, close, &queue).ok());
  CHECK(queue.status().state() == v1::QUEUE_CLOSED);
  CHECK(world.MustGetJob("a").status().reasons(0).code() == v1::WaitReason::QUEUE_CLOSED);
  v1::OpenQueueRequest open;
  open.set_name("q");
  REQUIRE(Call(*world.queues, &Queues::OpenQueue, open, &queue).ok());
  CHECK(queue.status().state() == v1::QUEUE_OPEN);
}

TEST_CASE("service: calls for nodes that do not exist") {
  ServiceWorld world;
  v1::Node node;
  v1::GetNodeRequest get;
  get.set_name("n1");
  CHECK(absl::IsNotFound(Call(*world.nodes, &Nodes::GetNode, get, &node)));
  v1::DrainNodeRequest drain;
  drain.set_name("n1");
  CHECK(absl::IsNotFound(Call(*world.nodes, &Nodes::DrainNode, drain, &node)));
  v1::CordonNodeRequest cordon;
  cordon.set_name("n1");
  cordon.set_reason(std::string(1025, 'x'));
  CHECK(absl::IsInvalidArgument(Call(*world.nodes, &Nodes::CordonNode, cordon, &node)));
  v1::ListNodesResponse list;
  CHECK(Call(*world.nodes, &Nodes::ListNodes, v1::ListNodesRequest(), &list).ok());
  CHECK(list.nodes().empty());
}

TEST_CASE("service: cluster info returns the state of the cluster") {
  ServiceWorld world;
  world.CreateQueue("q");
  world.MustSubmit({"a", "b"});
  v1::ClusterInfo info;
  REQUIRE(Call(*world.cluster, &v1::ClusterService::Stub::GetClusterInfo,
               v1::GetClusterInfoRequest(), &info)
              .ok());
  CHECK(info.cluster_id() == "test-cluster");
  CHECK(info.jobs().at("PENDING") == 2);
  CHECK(info.nodes().at("READY") == 0);
  CHECK(info.accepting_work());
  CHECK(info.revision() >= 2);
}

TEST_CASE("service: fields that an older version would misread wait until the upgrade is final") {
  ServiceWorld world({}, 5);
  world.CreateQueue("q");
  const auto finalize = [&](bool dry_run) {
    v1::FinalizeUpgradeRequest request;
    request.set_dry_run(dry_run);
    v1::FinalizeUpgradeResponse response;
    REQUIRE(
        Call(*world.cluster, &v1::ClusterService::Stub::FinalizeUpgrade, request, &response).ok());
    return response;
  };
  v1::SubmitJobsRequest submit;
  *submit.add_jobs() = SmallJob("part", "q");
  v1::ResourceRequest& resources =
      *submit.mutable_jobs(0)->mutable_spec()->mutable_groups(0)->mutable_resources();
  v1::DeviceRequest& gpu = *resources.add_devices();
  gpu.set_kind("gpu");
  const auto refused = [&](absl::string_view field) {
    v1::SubmitJobsResponse response;
    const absl::Status status = world.Submit(submit, &response);
    CHECK(absl::IsFailedPrecondition(status));
    CHECK(absl::StrContains(status.message(), field));
    CHECK(absl::StrContains(status.message(), "berth cluster finalize"));
  };
  gpu.set_memory_bytes(1 << 30);
  refused("devices[0].memory_bytes");
  gpu.set_count(1);
  gpu.set_min_compute_capability("9.0");
  refused("devices[0].min_compute_capability");
  gpu.clear_min_compute_capability();
  gpu.set_count(0);
  gpu.set_share(0.5);
  gpu.set_oversubscribe(true);
  refused("devices[0].oversubscribe");
  gpu.clear_oversubscribe();
  resources.set_scratch_bytes(1);
  refused("scratch_bytes");

  CHECK(finalize(true).format_before() == 5);
  CHECK(world.store().Format() == 5);
  world.Restart();
  refused("scratch_bytes");
  CHECK(finalize(false).format() == kStoreFormat);
  CHECK(world.store().Format() == kStoreFormat);
  CHECK(finalize(false).format_before() == kStoreFormat);
  v1::SubmitJobsResponse response;
  CHECK(world.Submit(submit, &response).ok());
  v1::ClusterInfo info;
  REQUIRE(Call(*world.cluster, &v1::ClusterService::Stub::GetClusterInfo,
               v1::GetClusterInfoRequest(), &info)
              .ok());
  CHECK(info.store_format() == info.newest_store_format());
}

}  // namespace berth::testing
