// What an import would change.
#include "clients/cli/topology/difference_text.h"
#include "tests/unit/topology/world.h"

namespace berth {
namespace {

constexpr char kSource[] = "import/slurm-conf";

HyperNodes Made(const std::string& text) {
  const Import import = RunImport("slurm-conf", text);
  REQUIRE(import.error == "");
  return import.made;
}

cli::v1::TopologyDifference Differ(const HyperNodes& wanted, const HyperNodes& present) {
  const auto difference = Compare(wanted, kSource, present);
  INFO(difference.status().message());
  REQUIRE(difference.ok());
  return *difference;
}

const char kBefore[] =
    "SwitchName=s0 Nodes=dev[0-5]\nSwitchName=s1 Nodes=dev[6-11]\nSwitchName=s2 Nodes=x\n"
    "SwitchName=top Switches=s[0-2]\n";

TEST_CASE("the difference is printed like a diff") {
  const HyperNodes before = Made(kBefore);
  CHECK(DifferenceText(Differ(before, {})) == R"(+ s0  network tier 1 leaf, 6 nodes
    + node dev[0-5]
+ s1  network tier 1 leaf, 6 nodes
    + node dev[6-9], dev[10-11]
+ s2  network tier 1 leaf, 1 node
    + node x
+ top  network tier 2 spine, 3 hypernodes
    + hypernode s[0-2]
import/slurm-conf: 4 to create, 0 to change, 0 to delete, 0 unchanged
)");
  const HyperNodes after = Made(
      "SwitchName=s0 Nodes=dev[0-2],dev[5-6] LinkSpeed=400\nSwitchName=s1 Nodes=dev[7-11]\n"
      "SwitchName=s3 Nodes=y\nSwitchName=mid Switches=s1\nSwitchName=top Switches=s0,mid,s3\n");
  CHECK(DifferenceText(Differ(after, before)) == R"(+ s3  network tier 1 leaf, 1 node
    + node y
+ mid  network tier 2 spine, 1 hypernode
    + hypernode s1
~ s0  network tier 1 leaf; 0 -> 400 Gb/s
    + node dev6
    - node dev[3-4]
~ s1  network tier 1 leaf
    - node dev6
~ top  network tier 3 core; tier 2 -> 3; tier name "spine" -> "core"
    + hypernode mid, s3
    - hypernode s[1-2]
- s2  network tier 1 leaf, 1 node
import/slurm-conf: 2 to create, 3 to change, 1 to delete, 0 unchanged
)");
  CHECK(DifferenceText(Differ(before, before)) ==
        "import/slurm-conf: no difference, 4 unchanged\n");
}

TEST_CASE("long lists are abbreviated") {
  std::string nodes = "n0";
  for (int i = 2; i < 60; i += 2) absl::StrAppend(&nodes, ",n", i);
  CHECK(DifferenceText(Differ(Made("SwitchName=a Nodes=" + nodes), {}))
            .find("    + node n0, n2, n4, n6, n8, n10, n12, n14 .. (30 nodes in all)\n") !=
        std::string::npos);
}

TEST_CASE("values that the import does not know remain") {
  HyperNodes present = Made(kBefore);
  v1::HyperNodeSpec& spec = *present[0].mutable_spec();
  spec.set_health(v1::HyperNodeSpec::DEGRADED);
  spec.set_health_reason("half of the uplinks");
  spec.set_latency_us(3);
  spec.set_bandwidth_gbps(200);
  present[0].set_etag("e7");
  present[0].mutable_status()->set_nodes(6);
  present[1].mutable_spec()->set_kind("");  // unset
  present[1].mutable_spec()->set_health(v1::HyperNodeSpec::OK);
  CHECK(Differ(Made(kBefore), present).unchanged() == 4);
  HyperNodes wanted = Made(kBefore);
  wanted[0].mutable_spec()->mutable_members()->RemoveLast();
  const cli::v1::TopologyDifference difference = Differ(wanted, present);
  REQUIRE(difference.updated_size() == 1);
  const v1::HyperNode& after = difference.updated(0).after();
  CHECK(after.spec().health() == v1::HyperNodeSpec::DEGRADED);
  CHECK(after.spec().health_reason() == "half of the uplinks");
  CHECK(after.spec().latency_us() == 3);
  CHECK(after.spec().bandwidth_gbps() == 200);
  CHECK(after.etag() == "e7");
  CHECK(!after.has_status());
}

TEST_CASE("members that were added to an imported HyperNode by hand are replaced") {
  HyperNodes present = Made("SwitchName=a Nodes=n1\n");
  present[0].mutable_spec()->add_members()->set_regex("n.*");
  present[0].mutable_spec()->add_members()->set_label("rack=a");
  CHECK(DifferenceText(Differ(Made("SwitchName=a Nodes=n1\n"), present)) ==
        "~ a  network tier 1 leaf\n    - node /n.*/, rack=a\n"
        "import/slurm-conf: 0 to create, 1 to change, 0 to delete, 0 unchanged\n");
}

TEST_CASE("HyperNodes of other sources are never changed, and using their names is an error") {
  HyperNodes present = Made(kBefore);
  present[0].mutable_spec()->set_source("");
  present[1].mutable_spec()->set_source("import/other");
  const HyperNodes none_of_them = Made("SwitchName=s2 Nodes=x\n");
  const cli::v1::TopologyDifference difference = Differ(none_of_them, present);
  REQUIRE(difference.deleted_size() == 1);
  CHECK(difference.deleted(0).name() == "top");
  const absl::Status clash = Compare(Made(kBefore), kSource, present).status();
  CHECK(clash.code() == absl::StatusCode::kAlreadyExists);
  CHECK(clash.message() ==
        "names in use by HyperNodes that this import does not maintain: \"s0\" (created manually), "
        "\"s1\" (maintained by import/other); rename them, or import with --prefix");
}

TEST_CASE("a kind cannot be changed") {
  HyperNodes present = Made("SwitchName=a Nodes=n1\n");
  present[0].mutable_spec()->set_kind("fabric");
  const absl::Status status = Compare(Made("SwitchName=a Nodes=n1\n"), kSource, present).status();
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(status.message() ==
        "kinds cannot be changed: \"a\" (fabric, would be network); delete them first, or import "
        "under another --name and --prefix");
}

}  // namespace
}  // namespace berth
