// Nodes that hold the image of a task are preferred, within what the fit allows.
#include <catch2/catch.hpp>
#include <memory>

#include "core/engine/search/node_search.h"
#include "core/model/image_id.h"
#include "core/model/state_editor.h"
#include "tests/property/dice.h"
#include "tests/unit/core/testing/fabric.h"

namespace berth {
namespace {

using testing::Fabric;
using testing::GroupShape;
using testing::Hard;
using testing::JobShape;
using testing::NodeShape;
using testing::TestCluster;

constexpr char kTorch[] = "registry.example/team/torch:2.3";

Policies PreferringBy(int32_t devices, std::vector<std::string> scores = {
                                           "reliable_first", "image_locality", "best_fit"}) {
  PolicyConfig config;
  config.actions = {"allocate"};
  config.scores = std::move(scores);
  config.image_locality.devices = devices;
  return *Policies::Create(config);
}

GroupShape InTorch(int replicas = 1, int gpus = 1) {
  return {.replicas = replicas, .gpus = gpus, .image = kTorch};
}

std::string Place(TestCluster& cluster, GroupShape group, Strategy strategy = Strategy::kDefault) {
  const JobId job = cluster.Submit(absl::StrCat("j", cluster.state().next_job_id().value),
                                   {.groups = {std::move(group)}, .strategy = strategy});
  cluster.Cycle();
  return cluster.Where(job);
}

TEST_CASE("names that mean the same image have one id") {
  const ImageId torch = ImageIdOf("registry.example/team/torch:2.3");
  CHECK(torch != ImageIdOf("registry.example/team/torch:2.4"));
  CHECK(torch != ImageIdOf("other.example/team/torch:2.3"));
  CHECK(ImageIdOf("h.example:5000/a/b") == ImageIdOf("h.example:5000/a/b:latest"));
  CHECK(ImageIdOf("h.example/a:1@sha256:12") == ImageIdOf("h.example/a@sha256:12"));
  CHECK(ImageIdOf("h.example/a:1@sha256:12") != ImageIdOf("h.example/a:1"));
  CHECK(ImageIdOf("docker.io/ubuntu") == ImageIdOf("docker.io/library/ubuntu:latest"));
  CHECK(ImageIdOf("") == ImageId{});
  // Stored: it never changes.
  CHECK(ImageIdOf("a/b:1").value == 0x888e3e8b10414d53u);

  using Ids = std::vector<ImageId>;
  CHECK(ImageIdsOf(kTorch, "") == Ids{torch});
  CHECK(ImageIdsOf(kTorch, "other.example") == Ids{torch});
  CHECK(ImageIdsOf(kTorch, "registry.example") == Ids{torch, ImageIdOf("team/torch:2.3")});
  CHECK(ImageIdsOf("docker.io/library/ubuntu:latest", "docker.io") ==
        Ids{ImageIdOf("docker.io/ubuntu"), ImageIdOf("library/ubuntu"), ImageIdOf("ubuntu")});
}

TEST_CASE("among equal nodes, one that holds the image is chosen") {
  TestCluster cluster(PreferringBy(0));
  cluster.AddNodes("n", 4, {.gpus = 2});
  cluster.Hold(kTorch, {"n3", "n4"});
  CHECK(Place(cluster, {.gpus = 1}) == "n1");  // no image
  CHECK(Place(cluster, {.gpus = 2, .image = "registry.example/other:1"}) == "n2");
  CHECK(Place(cluster, InTorch(3)) == "n1 n3 n3");  // n1 is tighter
  CHECK(Place(cluster, InTorch(2)) == "n4 n4");
}

TEST_CASE("image_locality.devices says how much worse the fit may be") {
  const auto where = [](int32_t devices) {
    TestCluster cluster(PreferringBy(devices));
    cluster.AddNode("small", {.gpus = 1});
    cluster.AddNode("large", {.gpus = 4});
    cluster.Hold(kTorch, {"large"});
    return Place(cluster, InTorch());
  };
  CHECK(where(0) == "small");
  CHECK(where(2) == "small");
  CHECK(where(3) == "large");
}

TEST_CASE("the score has no effect where it is not configured, or after best_fit") {
  for (const auto& scores : std::vector<std::vector<std::string>>{
           {"best_fit"}, {"best_fit", "image_locality"}, {"reliable_first"}}) {
    TestCluster cluster(PreferringBy(8, scores));
    cluster.AddNodes("n", 2, {.gpus = 2});
    cluster.Hold(kTorch, {"n2"});
    CHECK(Place(cluster, InTorch()) == "n1");
  }
}

TEST_CASE("a node without room, or that another filter rejects, is not preferred") {
  TestCluster cluster(PreferringBy(8));
  cluster.AddNodes("n", 3, {.gpus = 2});
  cluster.Hold(kTorch, {"n2", "n3"});
  GroupShape group = InTorch(2);
  group.exclude_nodes = {"n2"};
  CHECK(Place(cluster, group) == "n3 n3");
  CHECK(Place(cluster, group) == "n1 n1");  // n3 is full
}

TEST_CASE(
    "spread tasks are spread, and the image decides between nodes with equally many free devices") {
  TestCluster cluster(PreferringBy(0));
  cluster.AddNodes("n", 3, {.gpus = 4});
  cluster.Hold(kTorch, {"n3"});
  CHECK(Place(cluster, InTorch(4), Strategy::kSpread) == "n3 n1 n2 n3");
  TestCluster strong(PreferringBy(2));
  strong.AddNodes("n", 2, {.gpus = 4});
  strong.Hold(kTorch, {"n2"});
  CHECK(Place(strong, InTorch(4), Strategy::kSpread) == "n2 n2 n2 n1");
}

TEST_CASE("colocated tasks stay together, on a node that holds the image") {
  TestCluster cluster(PreferringBy(0));
  cluster.AddNodes("n", 3, {.gpus = 4});
  cluster.Hold(kTorch, {"n2"});
  CHECK(Place(cluster, InTorch(4), Strategy::kColocate) == "n2 n2 n2 n2");
  CHECK(Place(cluster, InTorch(4), Strategy::kColocate) == "n1 n1 n1 n1");
}

TEST_CASE("tasks without devices prefer the image among nodes with equally many devices") {
  for (const Strategy strategy : {Strategy::kBinpack, Strategy::kSpread}) {
    TestCluster cluster(PreferringBy(0));
    cluster.AddNode("gpu", {.cpu = 8, .gpus = 2});
    cluster.AddNode("big", {.cpu = 32});
    cluster.AddNode("mid", {.cpu = 16});
    cluster.AddNode("low", {.cpu = 8});
    cluster.Hold(kTorch, {"gpu", "mid"});
    CHECK(Place(cluster, {.cpu = 4, .image = kTorch}, strategy) == "mid");
  }
}

TEST_CASE("a job keeps to its domain first, and equal domains and nodes are chosen by the image") {
  Fabric fabric(PreferringBy(0));
  fabric.AddRacks(3, 3, {.gpus = 4});
  fabric.Hold(kTorch, {"r3n2", "r3n3"});
  CHECK(fabric.Where(fabric.Ask("one", Hard("rack"), InTorch(2, 4))) == "- -");
  fabric.Settle();
  CHECK(fabric.Where(fabric.state().FindJob("one")->id) == "r3n2 r3n3");
  // r1 and r2 are equal, r3 is tighter: what its node lacks does not matter.
  const JobId tight = fabric.Ask("tight", Hard("rack"), InTorch(1, 4));
  fabric.Settle();
  CHECK(fabric.Where(tight) == "r3n1");
}

TEST_CASE("of the nodes that have room for all of a gang, one that holds the image is chosen") {
  Fabric fabric(PreferringBy(0));
  fabric.AddRacks(1, 3, {.gpus = 4});
  fabric.Hold(kTorch, {"r1n2"});
  const JobId first = fabric.Ask("first", Hard("rack"), {.gpus = 2, .image = ""});
  fabric.Settle();
  CHECK(fabric.Where(first) == "r1n1");
  const JobId gang = fabric.Ask("gang", Hard("rack"), InTorch(4, 1));
  fabric.Settle();
  CHECK(fabric.Where(gang) == "r1n2 r1n2 r1n2 r1n2");
}

TEST_CASE("where devices are shared, the image decides between places of equal cost") {
  TestCluster cluster(PreferringBy(0));
  cluster.AddNodes("n", 3, {.gpus = 2, .tasks_per_gpu = 8});
  cluster.Hold(kTorch, {"n2"});
  GroupShape share{.share = 500, .image = kTorch};
  CHECK(Place(cluster, share) == "n2");
  share.image = "";
  CHECK(Place(cluster, share) == "n2");  // packed beside the first
  CHECK(Place(cluster, {.share = 500}) == "n2");
}

TEST_CASE("what Apply refuses about images") {
  TestCluster cluster;
  const NodeId node = cluster.AddNode("n1", {});
  const ImageId a{1}, b{2};
  cluster.Must(NodeImagesChanged{node, {a, b}, {}});
  const auto refusal = [&](EventBody event) {
    return std::string(cluster.Try(std::move(event)).message());
  };
  CHECK(refusal(NodeImagesChanged{NodeId{9}, {a}, {}}) == "no node 9");
  CHECK(refusal(NodeImagesChanged{node, {}, {}}) == "no images were gained or lost");
  CHECK(refusal(NodeImagesChanged{node, {a}, {}}) == "node n1 (1) already holds image 1");
  CHECK(refusal(NodeImagesChanged{node, {}, {ImageId{3}}}) == "node n1 (1) does not hold image 3");
  CHECK(refusal(NodeImagesChanged{node, {ImageId{4}, ImageId{3}}, {}}) ==
        "node n1 (1): images must be ascending, each once");
  CHECK(refusal(NodeImagesChanged{node, {ImageId{}}, {}}) ==
        "node n1 (1): images must be ascending, each once");
  std::vector<ImageId> many;
  for (uint64_t i = 3; i <= kMaxNodeImages + 1; ++i) many.push_back(ImageId{i});
  CHECK(refusal(NodeImagesChanged{node, many, {}}) == "node n1 (1) holds 513 images; at most 512");
  many.pop_back();
  cluster.Must(NodeImagesChanged{node, many, {}});
  CHECK(cluster.state().held_images() == kMaxNodeImages);
  cluster.Must(NodeImagesChanged{node, {}, {a}});
  CHECK(cluster.state().HoldersOf(a) == 0);
  CHECK(cluster.state().HoldersOf(b) == 1);
  REQUIRE(CheckConsistency(cluster.state()).ok());
}

// Makes the search look at every node: a second level that is always equal.
class EqualScore final : public NodeScore {
 public:
  absl::string_view name() const override { return "equal"; }
  std::optional<NodeRank> Prepare(const ScoreRequest&) const override {
    return [](const Offer&) { return 0; };
  }
};
std::unique_ptr<NodeScore> MakeEqualScore() { return std::make_unique<EqualScore>(); }

struct Searches {
  NodeSearch marked, unmarked, slow;
  explicit Searches(TestCluster& cluster, StateEditor& editor, const Policies& looks_at_all)
      : marked(cluster.state(), cluster.policies(), nullptr, &editor),
        unmarked(cluster.state(), cluster.policies()),
        slow(cluster.state(), looks_at_all) {}
  // How many tasks had a place.
  int Compare(const Seeker& seeker) {
    uint64_t work = 0, work_unmarked = 0, work_slow = 0;
    const std::optional<Found> found = marked.Best(seeker, &work);
    const std::optional<Found> plain = unmarked.Best(seeker, &work_unmarked);
    const std::optional<Found> best = slow.Best(seeker, &work_slow);
    REQUIRE(found.has_value() == best.has_value());
    REQUIRE(plain.has_value() == best.has_value());
    CHECK(work == work_unmarked);
    if (!best.has_value()) return 0;
    CHECK(found->node == best->node);
    CHECK(found->devices == best->devices);
    CHECK(plain->node == best->node);
    return 1;
  }
};

// Images of which 0 is held by most nodes, and the others by few.
void AddNodesWithImages(TestCluster& cluster, int nodes, Dice& dice) {
  for (int n = 1; n <= nodes; ++n) {
    NodeShape node{.cpu = 8 + 8 * dice.Below(3), .gpus = 2 * dice.Below(4)};
    node.labels = {{"zone", absl::StrCat("z", dice.Below(2))}};
    cluster.AddNode(absl::StrCat("n", n), node);
    for (int image = 0; image < 3; ++image) {
      const bool holds = image == 0 ? dice.Below(4) > 0 : dice.Below(6) == 0;
      if (holds) cluster.Hold(absl::StrCat("i", image), {absl::StrCat("n", n)});
    }
  }
}

GroupShape SomeGroup(Dice& dice) {
  GroupShape group{.replicas = 1 + dice.Below(4), .cpu = 1 + dice.Below(4)};
  group.gpus = dice.Below(4);
  group.image = absl::StrCat("i", dice.Below(4));
  if (dice.Below(3) == 0) group.match_labels = {{"zone", "z1"}};
  group.strategy = static_cast<Strategy>(dice.Below(4));
  return group;
}

// Returns how many searches found a place.
int CompareAll(int nodes, int jobs, int rounds, uint32_t seed) {
  Dice dice(seed);
  const int32_t devices = dice.Below(4);
  const Policies slow = PreferringBy(devices, {"image_locality", "equal", "best_fit"});
  TestCluster cluster(PreferringBy(devices));
  AddNodesWithImages(cluster, nodes, dice);
  for (int j = 0; j < jobs; ++j) {
    cluster.Submit(absl::StrCat("j", j), {.groups = {SomeGroup(dice)}});
    if (j == jobs / 2) cluster.Settle();
  }
  StateEditor editor(cluster.state(), EditMode::kTentative);
  Searches searches(cluster, editor, slow);
  int placed = 0;
  for (int round = 0; round < rounds; ++round) {
    cluster.state().jobs().ForEach([&](JobId, const Job& job) {
      if (job.pending_class == ClassId{}) return;
      placed += searches.Compare({.job = job, .window = {}, .rest = 3, .last = {}});
    });
  }
  return placed;
}

TEST_CASE("the search for holders finds what a look at every node finds") {
  static const bool registered = RegisterPolicy("equal", &MakeEqualScore).ok();
  REQUIRE(registered);
  int placed = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) placed += CompareAll(24, 40, 4, seed);
  CHECK(placed > 1000);
  placed = 0;  // more holders than are looked at one by one
  for (uint32_t seed = 1; seed <= 4; ++seed) placed += CompareAll(500, 600, 4, seed);
  CHECK(placed > 1000);
}

}  // namespace
}  // namespace berth
