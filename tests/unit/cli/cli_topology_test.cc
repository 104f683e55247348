// HyperNodes on the command line.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

v1::HyperNode Domain(const std::string& name, int32_t tier, const std::string& parent,
                     int64_t nodes, int64_t gpus, int64_t free) {
  v1::HyperNode domain;
  domain.set_name(name);
  domain.mutable_spec()->set_kind("network");
  domain.mutable_spec()->set_tier(tier);
  domain.mutable_spec()->set_health(v1::HyperNodeSpec::OK);
  v1::HyperNodeStatus& status = *domain.mutable_status();
  status.set_parent(parent);
  status.set_nodes(nodes);
  status.set_ready_nodes(nodes);
  if (gpus == 0) return domain;
  v1::DomainDevices& devices = *status.add_devices();
  devices.set_kind("gpu");
  devices.set_capacity(gpus);
  devices.set_free(free);
  return domain;
}

v1::ListHyperNodesResponse Tree() {
  v1::ListHyperNodesResponse list;
  *list.add_hyper_nodes() = Domain("rack-01", 1, "spine-1", 8, 64, 0);
  *list.add_hyper_nodes() = Domain("rack-02", 1, "spine-1", 8, 64, 64);
  *list.add_hyper_nodes() = Domain("spine-1", 2, "", 16, 128, 64);
  list.mutable_hyper_nodes(0)->mutable_spec()->set_tier_name("rack");
  list.mutable_hyper_nodes(0)->mutable_status()->set_ready_nodes(7);
  list.mutable_hyper_nodes(1)->mutable_status()->set_degraded(true);
  list.mutable_hyper_nodes(1)->mutable_status()->set_reason("lane 3");
  v1::HyperNode nvl = Domain("nvl-1", 1, "", 2, 0, 0);
  nvl.mutable_spec()->set_kind("nvlink");
  *list.add_hyper_nodes() = nvl;
  return list;
}

TEST_CASE("topology show draws every tree with its free resources") {
  Cli cli;
  cli.script.Answer("ListHyperNodes", Tree());
  v1::ClusterInfo info;
  (*info.mutable_nodes())["READY"] = 17;
  (*info.mutable_nodes())["LOST"] = 1;
  cli.script.Answer("GetClusterInfo", info);
  CHECK(cli.Run({"topology", "show"}) == 0);
  CHECK(cli.out() ==
        "DOMAIN       TIER        NODES  DEVICES  FREE    IN USE            HEALTH\n"
        "network                     18\n"
        "  spine-1    2              16  gpu 128  gpu 64  [#######-------]  Ok\n"
        "    rack-01  1 rack  7/8 ready  gpu 64   gpu 0   [##############]  Ok\n"
        "    rack-02  1               8  gpu 64   gpu 64  [--------------]  Degraded: lane 3\n"
        "  (in none)                  2\n"
        "nvlink                      18\n"
        "  nvl-1      1               2  -        -       -                 Ok\n"
        "  (in none)                 16\n");
  CHECK(cli.Run({"topology", "show", "--kind", "network", "-o", "name"}) == 0);
  CHECK(cli.script.Requests<v1::ListHyperNodesRequest>("ListHyperNodes")[1].kind() == "network");
  CHECK_THAT(cli.out(), Contains("hypernode/rack-01\nhypernode/rack-02\nhypernode/spine-1\n"));
}

TEST_CASE("topology describe prints path, members, children and conflicts") {
  Cli cli;
  v1::HyperNode spine = Tree().hyper_nodes(2);
  v1::HyperNodeSpec::Member& member = *spine.mutable_spec()->add_members();
  member.set_type(v1::HyperNodeSpec::Member::NODE);
  member.set_regex("n.*");
  spine.mutable_spec()->set_source("import/slurm");
  spine.mutable_status()->add_conflicts("there is no node \"n9\"");
  cli.script.Answer("GetHyperNode", spine);
  cli.script.Answer("ListHyperNodes", Tree());
  CHECK(cli.Run({"topology", "describe", "spine-1"}) == 0);
  CHECK_THAT(cli.out(), Contains("Path:     spine-1\n") && Contains("Source:   import/slurm\n") &&
                            Contains("Members:\n  node ~ n.*\n") && Contains("rack-02  network") &&
                            Contains("Conflicts:\n  there is no node \"n9\"\n"));
  cli.script.Answer("GetHyperNode", Tree().hyper_nodes(0));
  CHECK(cli.Run({"hypernode", "describe", "rack-01"}) == 0);
  CHECK(cli.Run({"hypernode", "describe", "rack-01"}) == 0);
  CHECK_THAT(cli.out(), Contains("spine-1 > rack-01"));
}

TEST_CASE("hypernode create, update and delete send the given values") {
  Cli cli;
  v1::HyperNode made = Domain("rack-1", 1, "", 0, 0, 0);
  made.set_etag("7");
  v1::HyperNodeSpec::Member& member = *made.mutable_spec()->add_members();
  member.set_type(v1::HyperNodeSpec::Member::NODE);
  member.set_exact("n1");
  cli.script.Answer("CreateHyperNode", made);
  cli.script.Answer("GetHyperNode", made);
  cli.script.Answer("UpdateHyperNode", made);
  cli.script.Answer("DeleteHyperNode", v1::DeleteHyperNodeResponse());
  CHECK(cli.Run({"hypernode", "create", "rack-1", "--tier", "1", "--tier-name", "rack", "--node",
                 "n1", "--node", "n2", "--regex", "m.*", "--label", "rack=1", "--child", "shelf",
                 "--bandwidth-gbps", "400"}) == 0);
  CHECK(cli.out() == "hypernode/rack-1 created\n");
  const auto create = cli.script.Requests<v1::CreateHyperNodeRequest>("CreateHyperNode")[0];
  CHECK(create.request_id().size() == 32);
  CHECK(create.hyper_node().spec().members_size() == 5);
  CHECK(create.hyper_node().spec().members(4).exact() == "shelf");
  CHECK(create.hyper_node().spec().bandwidth_gbps() == 400);

  CHECK(cli.Run({"hypernode", "update", "rack-1", "--health", "degraded", "--reason", "x"}) == 0);
  const auto update = cli.script.Requests<v1::UpdateHyperNodeRequest>("UpdateHyperNode")[0];
  CHECK(update.hyper_node().etag() == "7");
  CHECK(update.hyper_node().spec().members_size() == 1);  // unchanged
  CHECK(update.hyper_node().spec().health() == v1::HyperNodeSpec::DEGRADED);
  CHECK(cli.Run({"hypernode", "delete", "rack-1"}) == 0);
  CHECK(cli.out() == "hypernode/rack-1 deleted\n");
}

TEST_CASE("HyperNodes are applied in one call, before everything else") {
  Cli cli;
  const TempFile file(R"(apiVersion: berth/v1
kind: HyperNode
name: spine-1
tier: 2
members: [{type: hyperNode, exact: rack-1}]
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: rack-1}
spec:
  tier: 1
  members: [{type: Node, selector: {regexMatch: {pattern: "^n[0-3]$"}}}]
)");
  cli.script.Answer("GetHyperNode", absl::NotFoundError("there is none"));
  cli.script.Answer("ApplyHyperNodes", v1::ApplyHyperNodesResponse());
  CHECK(cli.Run({"apply", "-f", file.path()}) == 0);
  CHECK(cli.out() == "hypernode/spine-1 created\nhypernode/rack-1 created\n");
  const auto requests = cli.script.Requests<v1::ApplyHyperNodesRequest>("ApplyHyperNodes");
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].hyper_nodes(1).spec().members(0).regex() == "n[0-3]");
  CHECK(cli.Run({"hypernode", "apply", "-f", file.path(), "--dry-run"}) == 0);
  CHECK(cli.out() == "hypernode/spine-1 created (dry run)\nhypernode/rack-1 created (dry run)\n");
}

TEST_CASE("the server's violations in a HyperNode are reported with their place") {
  Cli cli;
  const TempFile file(
      "apiVersion: berth/v1\nkind: HyperNode\nname: rack-1\ntier: 1\n"
      "members: [{type: node, regex: 'n('}]\n");
  cli.script.Answer("GetHyperNode", absl::NotFoundError("there is none"));
  cli.script.Answer("ApplyHyperNodes",
                    ViolationsError(absl::StatusCode::kInvalidArgument,
                                    {{"hyper_nodes[0].spec.members[0].regex", "missing )"}}));
  CHECK(cli.Run({"apply", "-f", file.path()}) == 4);
  CHECK(cli.err() == file.path() + ":5:31: members[0].regex: missing )\n");
  const TempFile queue("apiVersion: berth/v1\nkind: Queue\nname: q\n");
  CHECK(cli.Run({"hypernode", "apply", "-f", queue.path()}) == 4);
  CHECK_THAT(cli.err(), Contains("not a HyperNode; use berth apply -f"));
}

}  // namespace
}  // namespace berth
