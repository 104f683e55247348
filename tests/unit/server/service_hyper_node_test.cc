// HyperNodeService over real gRPC: the tree is created, changed, read and kept over restarts.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/server/service_world.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {
namespace {

using Stub = v1::HyperNodeService::Stub;
using Member = v1::HyperNodeSpec::Member;
using Catch::Matchers::Contains;

v1::HyperNode Domain(const std::string& name, int32_t tier) {
  v1::HyperNode domain;
  domain.set_name(name);
  domain.mutable_spec()->set_tier(tier);
  return domain;
}

Member* Add(v1::HyperNode& domain, Member::Type type) {
  Member* member = domain.mutable_spec()->add_members();
  member->set_type(type);
  return member;
}

v1::HyperNode Rack(const std::string& name, const std::vector<std::string>& nodes) {
  v1::HyperNode rack = Domain(name, 1);
  rack.mutable_spec()->set_tier_name("rack");
  for (const std::string& node : nodes) Add(rack, Member::NODE)->set_exact(node);
  return rack;
}

v1::HyperNode Spine(const std::string& name, const std::vector<std::string>& racks) {
  v1::HyperNode spine = Domain(name, 2);
  for (const std::string& rack : racks) Add(spine, Member::HYPER_NODE)->set_exact(rack);
  return spine;
}

absl::Status Create(ServiceWorld& world, const v1::HyperNode& domain, v1::HyperNode* made,
                    const std::string& request_id = "") {
  v1::CreateHyperNodeRequest request;
  *request.mutable_hyper_node() = domain;
  request.set_request_id(request_id);
  return Call(*world.hyper_nodes, &Stub::CreateHyperNode, request, made);
}

absl::Status Update(ServiceWorld& world, const v1::HyperNode& domain, v1::HyperNode* made) {
  v1::UpdateHyperNodeRequest request;
  *request.mutable_hyper_node() = domain;
  return Call(*world.hyper_nodes, &Stub::UpdateHyperNode, request, made);
}

v1::HyperNode Get(ServiceWorld& world, const std::string& name) {
  v1::GetHyperNodeRequest request;
  request.set_name(name);
  v1::HyperNode domain;
  const absl::Status status = Call(*world.hyper_nodes, &Stub::GetHyperNode, request, &domain);
  INFO(status);
  REQUIRE(status.ok());
  return domain;
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

}  // namespace

TEST_CASE("service: a gang without a topology constraint gets a soft one") {
  int32_t tier = 1;
  SECTION("by default") {}
  SECTION("disabled on this server") { tier = 0; }
  ServiceWorld world([tier](config::v1::Server& config) {
    if (tier == 0)
      config.mutable_scheduling()->mutable_topology()->mutable_gangs()->set_highest_tier(0);
  });
  world.CreateQueue("q");
  const auto submit = [&world](const std::string& name, int32_t tasks, auto&& change) {
    v1::SubmitJobsRequest request;
    v1::JobSpec& spec = *request.add_jobs()->mutable_spec();
    spec = SmallJob(name).spec();
    request.mutable_jobs(0)->set_name(name);
    spec.mutable_groups(0)->set_replicas(tasks);
    change(spec);
    v1::SubmitJobsResponse response;
    const absl::Status status = world.Submit(request, &response);
    INFO(status);
    REQUIRE(status.ok());
    return world.MustGetJob(name).spec();
  };
  const auto nothing = [](v1::JobSpec&) {};
  CHECK_FALSE(submit("before-the-tree", 4, nothing).has_topology());
  v1::HyperNode made;
  REQUIRE(Create(world, Rack("rack-1", {"n1", "n2"}), &made).ok());
  const v1::JobSpec plain = submit("plain", 4, nothing);
  CHECK(plain.has_topology() == (tier == 1));
  if (tier == 1) {
    CHECK(plain.topology().mode() == v1::TopologyConstraint::SOFT);
    CHECK(plain.topology().highest_tier() == 1);
    CHECK(plain.topology().patience().seconds() == 600);
  }
  CHECK_FALSE(submit("alone", 1, nothing).has_topology());
  CHECK_FALSE(submit("one-by-one", 4, [](v1::JobSpec& spec) {
                spec.mutable_groups(0)->set_min_available(1);
              }).has_topology());
  CHECK_FALSE(
      submit("spread", 4, [](v1::JobSpec& spec) { spec.set_strategy(v1::SPREAD); }).has_topology());
  CHECK_FALSE(submit("packed-group", 4, [](v1::JobSpec& spec) {
                spec.mutable_groups(0)->set_strategy(v1::BINPACK);
              }).has_topology());
  v1::JobAffinity affinity;
  (*affinity.add_near()->mutable_match_labels())["app"] = "cache";
  affinity.mutable_near(0)->set_tier(1);
  (*affinity.add_apart_from()->mutable_match_labels())["load"] = "noisy";
  affinity.mutable_apart_from(0)->set_all_queues(true);
  const v1::JobSpec beside =
      submit("beside", 4, [&](v1::JobSpec& spec) { *spec.mutable_affinity() = affinity; });
  CHECK_FALSE(beside.has_topology());
  CHECK(beside.affinity().SerializeAsString() == affinity.SerializeAsString());
  const v1::JobSpec hard = submit("hard", 4, [](v1::JobSpec& spec) {
    spec.mutable_topology()->set_mode(v1::TopologyConstraint::HARD);
    spec.mutable_topology()->set_highest_tier(3);
  });
  CHECK(hard.topology().mode() == v1::TopologyConstraint::HARD);
  CHECK(hard.topology().highest_tier() == 3);
}

TEST_CASE("service: HyperNodes are made, read, changed and deleted") {
  ServiceWorld world;
  v1::HyperNode made;
  REQUIRE(Create(world, Rack("rack-1", {"n1", "n2"}), &made).ok());
  CHECK(made.spec().kind() == "network");
  CHECK(made.spec().health() == v1::HyperNodeSpec::OK);
  CHECK(made.status().nodes() == 0);
  CHECK(absl::IsAlreadyExists(Create(world, Rack("rack-1", {}), &made)));
  REQUIRE(Create(world, Spine("spine", {"rack-1", "rack-2"}), &made).ok());
  CHECK(Get(world, "rack-1").status().parent() == "spine");
  v1::HyperNode spine = Get(world, "spine");
  CHECK(spine.status().children() == 1);
  REQUIRE(spine.status().conflicts_size() == 1);
  CHECK(spine.status().conflicts(0) == "there is no HyperNode \"rack-2\"");
  CHECK(Get(world, "rack-1").status().conflicts(1) == "there is no node \"n2\"");

  spine.clear_status();
  spine.mutable_spec()->set_health(v1::HyperNodeSpec::DEGRADED);
  spine.mutable_spec()->set_health_reason("flaps");
  REQUIRE(Update(world, spine, &made).ok());
  CHECK(made.etag() != spine.etag());
  CHECK(absl::IsAborted(Update(world, spine, &made)));  // the etag is outdated
  const v1::HyperNode rack = Get(world, "rack-1");
  CHECK(rack.status().degraded());
  CHECK(rack.status().reason() == "in spine: flaps");

  world.Restart();
  CHECK(Get(world, "rack-1").SerializeAsString() == rack.SerializeAsString());
  v1::DeleteHyperNodeRequest remove;
  remove.set_name("spine");
  v1::DeleteHyperNodeResponse removed;
  REQUIRE(Call(*world.hyper_nodes, &Stub::DeleteHyperNode, remove, &removed).ok());
  CHECK(absl::IsNotFound(Call(*world.hyper_nodes, &Stub::DeleteHyperNode, remove, &removed)));
  CHECK(Get(world, "rack-1").status().parent().empty());
}

TEST_CASE("service: watchers see changes of HyperNodes") {
  ServiceWorld world;
  grpc::ClientContext context;
  v1::WatchRequest request;
  request.set_hyper_nodes(true);
  request.set_no_jobs(true);
  auto reader = world.watch->Watch(&context, request);
  v1::WatchResponse response;
  REQUIRE(reader->Read(&response));
  v1::HyperNode made;
  REQUIRE(Create(world, Rack("rack-1", {}), &made).ok());
  REQUIRE(reader->Read(&response));
  REQUIRE(response.events_size() == 1);
  CHECK(response.events(0).type() == v1::ChangeEvent::HYPER_NODE_CHANGED);
  CHECK(response.events(0).hyper_node() == "rack-1");
  context.TryCancel();
  reader->Finish();
}

TEST_CASE("service: errors of a HyperNode are reported by field") {
  ServiceWorld world;
  v1::HyperNode bad = Domain("Rack", 0);
  bad.mutable_spec()->set_kind("NV");
  bad.mutable_spec()->set_source("somebody");
  bad.mutable_spec()->set_latency_us(-1);
  Add(bad, Member::NODE)->set_regex("n(");
  Add(bad, Member::NODE)->set_label("rack");
  Add(bad, Member::NODE);
  Add(bad, Member::HYPER_NODE)->set_regex("r.*");
  Add(bad, Member::TYPE_UNSPECIFIED)->set_exact("n");
  v1::HyperNode made;
  const absl::Status status = Create(world, bad, &made);
  CHECK(absl::IsInvalidArgument(status));
  std::string all;
  for (const Violation& violation : ViolationsOf(status)) {
    absl::StrAppend(&all, violation.field, ": ", violation.description, "\n");
  }
  CHECK_THAT(all, Contains("hyper_node.name: ") &&
                      Contains("hyper_node.spec.tier: must be 1..100") &&
                      Contains("hyper_node.spec.kind: ") &&
                      Contains("hyper_node.spec.source: must be empty, \"agents\" or") &&
                      Contains("hyper_node.spec.latency_us: "));
  CHECK_THAT(all, Contains("members[0].regex: \"n(\" is not a valid regular expression: missing ): "
                           "n(") &&
                      Contains("members[1].label: must be KEY=VALUE") &&
                      Contains("members[2]: requires one of exact, regex and label") &&
                      Contains("members[3]: a HyperNode must be selected by its exact name") &&
                      Contains("members[4].type: required: NODE or HYPER_NODE"));
}

TEST_CASE("service: an invalid tree is refused, naming the culprits") {
  ServiceWorld world;
  v1::HyperNode made;
  REQUIRE(Create(world, Rack("rack", {}), &made).ok());
  REQUIRE(Create(world, Spine("pod", {"rack"}), &made).ok());
  const absl::Status second = Create(world, Spine("spine", {"rack"}), &made);
  CHECK(absl::IsFailedPrecondition(second));
  CHECK(Message(second) == "HyperNode rack is a member of pod and of spine: one parent each");
  v1::HyperNode moved = Rack("rack", {});
  moved.mutable_spec()->set_kind("nvlink");
  CHECK(absl::IsInvalidArgument(Update(world, moved, &made)));
  v1::HyperNode taken = Rack("rack", {});
  taken.mutable_spec()->set_source("import/slurm");
  CHECK(Message(Update(world, taken, &made)) ==
        "HyperNode \"rack\" is managed by hand, not by import/slurm: a source can only be changed "
        "to empty");
}

TEST_CASE("service: many HyperNodes are applied all or none") {
  ServiceWorld world;
  v1::ApplyHyperNodesRequest request;
  *request.add_hyper_nodes() = Spine("spine", {"rack-1", "rack-2"});  // before its members
  *request.add_hyper_nodes() = Rack("rack-1", {"n1"});
  *request.add_hyper_nodes() = Rack("rack-2", {"n2"});
  request.set_validate_only(true);
  v1::ApplyHyperNodesResponse answer;
  const auto apply = [&] {
    answer.Clear();
    return Call(*world.hyper_nodes, &Stub::ApplyHyperNodes, request, &answer);
  };
  REQUIRE(apply().ok());
  CHECK(answer.created() == 3);
  v1::ListHyperNodesResponse list;
  const auto count = [&](const v1::ListHyperNodesRequest& which = {}) {
    REQUIRE(Call(*world.hyper_nodes, &Stub::ListHyperNodes, which, &list).ok());
    return list.hyper_nodes_size();
  };
  CHECK(count() == 0);
  request.set_validate_only(false);
  request.set_request_id("once");
  REQUIRE(apply().ok());
  CHECK(answer.created() == 3);
  REQUIRE(apply().ok());  // repeated: the same answer
  CHECK(answer.created() == 3);
  request.set_request_id("");
  REQUIRE(apply().ok());
  CHECK(answer.unchanged() == 3);

  request.mutable_hyper_nodes(1)->mutable_spec()->set_bandwidth_gbps(400);
  *request.add_hyper_nodes() = Spine("other", {"rack-2"});
  CHECK(absl::IsFailedPrecondition(apply()));
  CHECK(Get(world, "rack-1").spec().bandwidth_gbps() == 0);
  request.mutable_hyper_nodes()->RemoveLast();
  request.mutable_hyper_nodes()->DeleteSubrange(2, 1);
  request.mutable_hyper_nodes(0)->mutable_spec()->mutable_members()->RemoveLast();
  request.add_delete_names("rack-2");
  REQUIRE(apply().ok());
  CHECK(answer.updated() == 2);
  CHECK(answer.deleted() == 1);
  CHECK(count() == 2);
  request.clear_hyper_nodes();
  CHECK(absl::IsNotFound(apply()));

  v1::HyperNode made, nvl = Domain("a-domain", 1);
  nvl.mutable_spec()->set_kind("nvlink");
  nvl.mutable_spec()->set_source("import/nv");
  REQUIRE(Create(world, nvl, &made).ok());
  v1::ListHyperNodesRequest filter;
  filter.set_page_size(2);
  CHECK(count(filter) == 2);
  CHECK(list.hyper_nodes(0).name() == "rack-1");  // by kind, then name
  filter.set_page_token(list.next_page_token());
  CHECK(count(filter) == 1);
  CHECK(list.hyper_nodes(0).name() == "a-domain");
  CHECK(list.next_page_token().empty());
  filter.Clear();
  filter.set_kind("nvlink");
  CHECK(count(filter) == 1);
  filter.set_source("import/other");
  CHECK(count(filter) == 0);
}

}  // namespace berth::testing
