// Which GPU is reconfigured, and how.
#include "core/engine/search/mig_division.h"

#include <catch2/catch.hpp>

#include "tests/unit/core/testing/cluster.h"

namespace berth {
namespace {

using testing::TestCluster;

struct MigNode {
  std::vector<std::vector<std::string>> gpus;  // the profiles of each
  bool divides = true;
  bool held = false;
  int64_t cpu = 64;
  std::map<std::string, std::string> labels = {};
};

NodeSpec MakeMigNode(const std::string& name, const MigNode& shape) {
  NodeSpec spec = testing::MakeNode(name, {.cpu = shape.cpu, .labels = shape.labels});
  spec.divides_gpus = shape.divides;
  for (size_t g = 0; g < shape.gpus.size(); ++g) {
    const std::string gpu = absl::StrCat(name, "-gpu-", g);
    const std::string pci = absl::StrFormat("0000:%02x:00.0", g);
    if (shape.divides) {
      spec.devices.push_back({.kind = "mig",
                              .uuid = gpu,
                              .model = "NVIDIA H100 80GB HBM3",
                              .memory_bytes = int64_t{80} << 30,
                              .pci_bus_id = pci,
                              .unhealthy = true});
    }
    for (size_t i = 0; i < shape.gpus[g].size(); ++i) {
      spec.devices.push_back({.kind = "mig",
                              .uuid = absl::StrCat(gpu, "-mig-", i),
                              .model = shape.gpus[g][i],
                              .memory_bytes = int64_t{10} << 30,
                              .pci_bus_id = pci,
                              .unhealthy = shape.held});
    }
  }
  SortDevices(spec);
  return spec;
}

const std::vector<std::string> kSevenfold(7, "1g.10gb");
const std::vector<std::string> kHalves(2, "3g.40gb");

class MigCluster : public TestCluster {
 public:
  void Add(const std::string& name, const MigNode& shape) {
    const Node* known = state().FindNode(name);
    const NodeId id = known == nullptr ? state().next_node_id() : known->id;
    const uint64_t epoch = known == nullptr ? 1 : known->status.epoch + 1;
    Must(NodeRegistered{
        .id = id, .spec = MakeMigNode(name, shape), .epoch = epoch, .agent_id = name});
  }
  // Tasks of `count` instances each.
  JobId Ask(const std::string& name, std::vector<std::string> profiles, int count = 1,
            int tasks = 1, int priority = 0, testing::GroupShape group = {}) {
    if (state().FindQueue("default") == nullptr) AddQueue("default");
    group.replicas = tasks;
    JobSpec spec = testing::MakeJob(name, state().FindQueue("default")->id,
                                    {.priority = priority, .groups = {group}});
    spec.groups[0].shape.devices = {{.kind = "mig", .count = count, .models = std::move(profiles)}};
    const JobId id = state().next_job_id();
    Must(JobSubmitted{.id = id, .spec = std::move(spec)});
    Settle();
    return id;
  }
  std::optional<MigDivision> Next(const std::vector<MigDivision>& under_way = {}) {
    std::vector<MigSeeker> seekers = Seekers();
    int tries = 1000;
    return Next(under_way, seekers, tries);
  }
  std::optional<MigDivision> Next(const std::vector<MigDivision>& under_way,
                                  std::vector<MigSeeker>& seekers, int& tries) {
    return NextMigDivision(
        state(), policies, absl::MakeSpan(seekers), under_way,
        [](const Node&, const MigGpu&) { return true; }, &tries);
  }
  std::vector<MigSeeker> Seekers() {
    std::vector<MigSeeker> seekers;
    for (const ClassId id : ClassesShortOfMig(state())) seekers.push_back({id});
    return seekers;
  }
  // "n1-gpu-0: 3g.40gb@0 3g.40gb@4", "" = none.
  std::string Text(const std::vector<MigDivision>& under_way = {}) {
    const auto next = Next(under_way);
    if (!next.has_value()) return "";
    std::string text = absl::StrCat(next->gpu, ":");
    for (const MigPart& part : next->layout)
      absl::StrAppend(&text, " ", part.profile, "@", part.start);
    return text;
  }

  const Policies policies = testing::PoliciesWith({"allocate"});
};

TEST_CASE("a GPU is reconfigured for pending jobs if its node allows it") {
  MigCluster cluster;
  cluster.Add("n1", {.gpus = {kSevenfold}});
  CHECK(cluster.Text().empty());
  const JobId job = cluster.Ask("j", {"3g.40gb"}, 2);
  CHECK(cluster.Text() == "n1-gpu-0: 3g.40gb@0 3g.40gb@4");
  CHECK(cluster.Next()->asked_by == cluster.job(job).pending_class);
  cluster.Add("n1", {.gpus = {kSevenfold}, .divides = false});
  cluster.Settle();
  CHECK(cluster.Text().empty());
  CHECK_THAT(MigNote(cluster.state(), cluster.job(job)),
             Catch::Matchers::Contains("no node allows its GPUs in MIG mode to be reconfigured"));
  cluster.Add("n1", {.gpus = {kSevenfold}, .held = true});
  cluster.Settle();
  CHECK(MigNote(cluster.state(), cluster.job(job)) == "a GPU of node n1 is being reconfigured");
  CHECK(cluster.Text() == "n1-gpu-0: 3g.40gb@0 3g.40gb@4");
  cluster.Add("n1", {.gpus = {kHalves}});
  cluster.Settle();
  CHECK(cluster.StateOf(job) == "Binding");
  CHECK(cluster.Text().empty());
}

TEST_CASE("a GPU in MIG mode without instances is configured") {
  MigCluster cluster;
  cluster.Add("n1", {.gpus = {{}}});
  cluster.Ask("j", {"1g.10gb"});
  CHECK(cluster.Text() ==
        "n1-gpu-0: 1g.10gb@0 1g.10gb@1 1g.10gb@2 1g.10gb@3 1g.10gb@4 1g.10gb@5 1g.10gb@6");
}

TEST_CASE("a GPU that is in use or reserved is not reconfigured") {
  MigCluster cluster;
  cluster.Add("n1", {.gpus = {kSevenfold, kSevenfold}});
  const JobId user = cluster.Ask("user", {"1g.10gb"});
  cluster.Ask("j", {"3g.40gb"}, 1, 3);  // more than one GPU has
  CHECK(cluster.Text() == "n1-gpu-1: 3g.40gb@0 3g.40gb@4");
  cluster.RunAll(user);
  const Node& node = *cluster.state().FindNode("n1");
  const std::vector<MigGpu> gpus = MigGpusOf(node);
  REQUIRE(gpus.size() == 2);
  CHECK_FALSE(IsIdle(DevicesReserved(cluster.state()), node, gpus[0]));
  CHECK(IsIdle(DevicesReserved(cluster.state()), node, gpus[1]));
  cluster.Exit(user, 0);
  CHECK(IsIdle(DevicesReserved(cluster.state()), *cluster.state().FindNode("n1"), gpus[0]));
  size_t i = 0;
  while (!gpus[0].instances.Has(i)) ++i;
  const JobId kept = cluster.Ask("kept", {"7g.80gb"});
  cluster.Must(JobReserved{
      .job = kept,
      .reservation = {.start = cluster.now() + absl::Hours(1),
                      .end = cluster.now() + absl::Hours(2),
                      .places = {{.task = 0, .node = node.id, .devices = DeviceSet::Of(i)}}}});
  CHECK_FALSE(IsIdle(DevicesReserved(cluster.state()), *cluster.state().FindNode("n1"), gpus[0]));
}

TEST_CASE("no GPU is reconfigured where a task would not fit for other reasons") {
  MigCluster cluster;
  cluster.Add("small", {.gpus = {kSevenfold}, .cpu = 1});
  cluster.Add("other", {.gpus = {kSevenfold}, .labels = {{"zone", "b"}}});
  cluster.Ask("j", {"3g.40gb"}, 1, 1, 0, {.cpu = 8, .match_labels = {{"zone", "a"}}});
  CHECK(cluster.Text().empty());
  cluster.Add("good", {.gpus = {kSevenfold}, .labels = {{"zone", "a"}}});
  cluster.Settle();
  CHECK(cluster.Text() == "good-gpu-0: 1g.10gb@0 1g.10gb@1 1g.10gb@2 1g.10gb@3 3g.40gb@4");
}

TEST_CASE("a search stops when its tries are used up and resumes there, and a failed class rests") {
  MigCluster cluster;
  for (const char* name : {"a", "b", "c"}) cluster.Add(name, {.gpus = {kSevenfold}, .cpu = 1});
  cluster.Add("d", {.gpus = {kSevenfold}});
  cluster.Ask("j", {"3g.40gb"}, 1, 1, 0, {.cpu = 8});
  std::vector<MigSeeker> seekers = cluster.Seekers();
  REQUIRE(seekers.size() == 1);
  int tries = 2;
  CHECK_FALSE(cluster.Next({}, seekers, tries).has_value());
  CHECK(tries == 0);
  CHECK(seekers[0].from == 2);
  CHECK_FALSE(seekers[0].rests);
  tries = 2;
  const auto next = cluster.Next({}, seekers, tries);
  REQUIRE(next.has_value());
  CHECK(next->gpu == "d-gpu-0");
  seekers[0].rests = true;
  CHECK_FALSE(cluster.Next({}, seekers, tries).has_value());
  cluster.Add("d", {.gpus = {kSevenfold}, .cpu = 1});
  cluster.Settle();
  seekers = cluster.Seekers();
  tries = 100;
  CHECK_FALSE(cluster.Next({}, seekers, tries).has_value());
  CHECK(seekers[0].rests);
  CHECK(tries == 96);
}

TEST_CASE("existing instances count, as do reconfigurations in progress") {
  MigCluster cluster;
  cluster.Add("n1", {.gpus = {kHalves}});
  cluster.Add("n2", {.gpus = {kSevenfold}});
  cluster.Add("n3", {.gpus = {kSevenfold}});
  cluster.Ask("j", {"3g.40gb"}, 1, 4);  // there is room for two of four
  const auto first = cluster.Next();
  REQUIRE(first.has_value());
  CHECK(first->gpu == "n2-gpu-0");
  CHECK(first->layout == std::vector<MigPart>{{"3g.40gb", 0}, {"3g.40gb", 4}});
  CHECK_FALSE(cluster.Next({*first}).has_value());  // the one in progress suffices
  cluster.Ask("k", {"7g.80gb"});
  CHECK(cluster.Text({*first}) == "n3-gpu-0: 7g.80gb@0");
}

TEST_CASE("the rest of a GPU serves later jobs, while instances for earlier jobs stay") {
  const std::vector<std::string> thirds(3, "2g.20gb");
  MigCluster cluster;
  cluster.Add("n1", {.gpus = {thirds}});
  cluster.RunAll(cluster.Ask("user", {"2g.20gb"}));
  cluster.Add("n2", {.gpus = {thirds}});
  cluster.Ask("first", {"2g.20gb"}, 1, 6, 2);  // gets room once the other has ended
  cluster.Ask("second", {"3g.40gb"}, 1, 1, 1);
  CHECK(cluster.Text().empty());
  MigCluster hopeless;
  hopeless.Add("n1", {.gpus = {thirds}});
  hopeless.Ask("first", {"2g.20gb"}, 4, 1, 2);  // one task that no GPU could hold
  hopeless.Ask("second", {"3g.40gb"}, 1, 1, 1);
  CHECK(hopeless.Text() == "n1-gpu-0: 1g.10gb@0 1g.10gb@1 1g.10gb@2 1g.10gb@3 3g.40gb@4");
  MigCluster other;
  other.Add("n1", {.gpus = {{}}});
  other.Ask("first", {"3g.40gb"}, 1, 1, 2);
  other.Ask("second", {"2g.20gb"}, 1, 1, 1);
  CHECK(other.Text() == "n1-gpu-0: 1g.10gb@0 1g.10gb@1 2g.20gb@2 3g.40gb@4");
}

TEST_CASE("any of several profiles is accepted, a profile of another GPU is not") {
  MigCluster cluster;
  cluster.Add("n1", {.gpus = {kSevenfold}});
  cluster.Ask("other", {"3g.20gb"});
  CHECK(cluster.Text().empty());
  cluster.Ask("j", {"3g.20gb", "4g.40gb"});
  CHECK(cluster.Text() == "n1-gpu-0: 4g.40gb@0 1g.10gb@4 1g.10gb@5 1g.10gb@6");
}

TEST_CASE("a job that requests no instances gets no MIG note") {
  MigCluster cluster;
  cluster.Add("n1", {.gpus = {kSevenfold}, .divides = false});
  const JobId job = cluster.Submit("j", {.groups = {{.gpus = 1}}});
  cluster.Settle();
  CHECK(MigNote(cluster.state(), cluster.job(job)).empty());
  CHECK(ClassesShortOfMig(cluster.state()).empty());
}

}  // namespace
}  // namespace berth
