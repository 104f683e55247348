// Device selection on a node that reports how its devices are connected.
#include <catch2/catch.hpp>

#include "core/devices/best_set.h"
#include "core/devices/handover.h"
#include "core/engine/explain/explain.h"
#include "tests/unit/core/testing/cluster.h"
#include "tests/unit/core/testing/layouts.h"

namespace berth {
namespace {

using testing::Matrix;
using testing::TestCluster;

// The set as digits: "0134".
std::string Digits(KindMask mask) {
  std::string digits;
  for (size_t i = 0; i < kMaxLaidOut; ++i) {
    if ((mask >> i & 1) != 0) absl::StrAppend(&digits, i);
  }
  return digits;
}

KindMask Mask(absl::string_view digits) {
  KindMask mask = 0;
  for (const char digit : digits) mask |= KindMask{1} << (digit - '0');
  return mask;
}

struct Laid {
  explicit Laid(const Matrix& matrix) {
    testing::SetDevices(matrix, &spec);
    layout = std::make_unique<DeviceLayout>(LayoutKeyOf(spec));
  }
  const KindLayout& gpus() const { return *layout->Of("gpu"); }
  std::string Best(absl::string_view free, int size, LinkFloor floor = {}) const {
    return Digits(BestSet(gpus(), {.candidates = Mask(free), .size = size, .floor = floor}));
  }
  NodeSpec spec;
  std::unique_ptr<DeviceLayout> layout;
};

TEST_CASE("link scores follow the link classes, NVLink its width") {
  const std::vector<std::string> worst_first = {"?",   "SYS", "SYS+", "NODE", "PHB",
                                                "PXB", "PIX", "NV1",  "NV2",  "NV18"};
  for (size_t i = 1; i < worst_first.size(); ++i) {
    CHECK(ScoreOf(testing::LinkFrom(worst_first[i - 1])) <
          ScoreOf(testing::LinkFrom(worst_first[i])));
  }
  CHECK(MbPerS({.link = LinkClass::kNvlink, .count = 18}) == 450'000);
  CHECK(MbPerS({.link = LinkClass::kNvlink, .count = 18, .mb_per_s = 7}) == 7);
}

TEST_CASE("the best worst link decides first") {
  const Laid laid(testing::Dgx1());
  CHECK(laid.Best("01234567", 2) == "03");    // NV2, as are others: the lowest ids
  CHECK(laid.Best("0125", 2) == "12");        // NV2
  CHECK(laid.Best("01234567", 4) == "0123");  // a quad
  CHECK(laid.Best("0156", 3) == "015");       // any three have a SYS pair: the lowest ids
}

TEST_CASE("a quad is not broken for a pair if another pair is equally good") {
  Matrix quads{.name = "quads", .gpus = 8, .rows = testing::BlockRows(8, 4, "NV4", "SYS")};
  const Laid laid(quads);
  CHECK(laid.Best("012356", 2) == "56");
  CHECK(laid.Best("014567", 2) == "01");
  CHECK(laid.Best("01236", 1) == "6");
  CHECK(laid.Best("01234567", 2) == "01");
}

TEST_CASE("of equal links, sets near a NIC are better, then sets on few NUMA nodes") {
  Matrix matrix{.name = "nic",
                .gpus = 4,
                .rows = {"X NV1 NV1 NV1 SYS", "NV1 X NV1 NV1 SYS", "NV1 NV1 X NV1 PIX",
                         "NV1 NV1 NV1 X NODE", "SYS SYS PIX NODE X"},
                .numa = {0, 0, 1, 1, 1}};
  const Laid laid(matrix);
  CHECK(laid.Best("0123", 1) == "2");
  CHECK(laid.Best("0123", 2) == "23");
  CHECK(laid.Best("013", 2) == "01");
}

TEST_CASE("a floor excludes sets with any worse link") {
  const Laid laid(testing::Dgx1());
  const LinkFloor nvlink{.score = LeastScore(LinkClass::kNvlink)};
  CHECK(laid.Best("01234567", 4, nvlink) == "0123");
  CHECK(laid.Best("0167", 2, nvlink) == "67");
  CHECK(laid.Best("0257", 4, nvlink) == "");
  CHECK(laid.Best("01234567", 8, nvlink) == "");
  CHECK(laid.Best("01234567", 2, {.mb_per_s = 50'000}) == "03");
  CHECK(laid.Best("0125", 2, {.mb_per_s = 50'001}) == "");
  const SetQuery pairs{.candidates = Mask("01234567"), .size = 2, .floor = nvlink};
  CHECK(CountSets(laid.gpus(), pairs, 100) == 4);
  CHECK(CountSets(laid.gpus(), pairs, 3) == 3);
}

TEST_CASE("a floor follows from the request and ignores single devices") {
  DeviceRequest request{.kind = "gpu", .count = 2, .min_bandwidth_gbps = 400};
  CHECK(FloorOf(request).mb_per_s == 50'000);
  request.min_link = LinkClass::kPxb;
  CHECK(FloorOf(request).score == LeastScore(LinkClass::kPxb));
  request.count = 1;
  CHECK_FALSE(FloorOf(request).any());
}

TEST_CASE("NICs: the nearest to each GPU first, ties by preference") {
  const Laid laid(testing::HgxH100());
  const KindMask all = Mask("01234567");
  CHECK(Digits(NearestNics(laid.gpus(), Mask("46"), all, 2, 0)) == "46");
  CHECK(Digits(NearestNics(laid.gpus(), Mask("46"), Mask("01234567") & ~Mask("4"), 2, 0)) == "56");
  CHECK(Digits(NearestNics(laid.gpus(), Mask("46"), Mask("0123567"), 2, Mask("7"))) == "67");
  CHECK(Digits(NearestNics(laid.gpus(), Mask("4"), all, 2, 0)) == "45");
  CHECK(NearestNics(laid.gpus(), Mask("4"), Mask("1"), 2, 0) == 0);
  const Laid p5(testing::P5());
  CHECK(NearestNics(p5.gpus(), Mask("02"), (KindMask{1} << 32) - 1, 8, 0) == 0xF0F);
}

TEST_CASE("rings follow the links") {
  const Laid laid(testing::Dgx1());
  const std::vector<size_t> ring = RingOrder(laid.gpus(), Mask("01234567"));
  CHECK(ring == std::vector<size_t>{0, 3, 2, 1, 5, 6, 7, 4});
  CHECK(RingOrder(Laid(testing::HgxH100()).gpus(), Mask("135")) == std::vector<size_t>{1, 3, 5});
}

TEST_CASE("CPUs and memory come from the devices' NUMA nodes if they have enough") {
  NodeSpec spec;
  testing::SetDevices(testing::HgxH100(), &spec);
  constexpr int64_t kGib = int64_t{1} << 30;
  spec.topology.numa_nodes = {
      {.id = 0, .package = 0, .cpus = "0-3,8-11", .memory_bytes = 64 * kGib},
      {.id = 1, .package = 1, .cpus = "4-7", .memory_bytes = 64 * kGib}};
  DeviceSet devices;
  devices.Add(0);
  const auto near = [&](int64_t cpu_millis, int64_t memory,
                        const std::vector<HostUse>& others = {}) {
    return HostNear(spec, {devices, cpu_millis, memory}, others);
  };
  CHECK(near(8'000, kGib).cpus == "0-3,8-11");
  CHECK(near(8'001, kGib).cpus == "");
  CHECK(near(0, 65 * kGib).memory_nodes.empty());
  // Requests of tasks near the same devices count; those elsewhere do not.
  DeviceSet neighbour, far;
  neighbour.Add(1);
  far.Add(7);
  CHECK(near(5'000, kGib, {{neighbour, 3'000, kGib}, {far, 4'000, 60 * kGib}}).cpus == "0-3,8-11");
  CHECK(near(5'000, kGib, {{neighbour, 3'001, kGib}}).cpus == "");
  CHECK(near(5'000, 32 * kGib, {{neighbour, 0, 33 * kGib}}).cpus == "");
  CHECK(near(5'000, kGib, {{{}, 8'000, 64 * kGib}}).cpus == "0-3,8-11");
  devices.Add(7);
  CHECK(near(12'000, 128 * kGib).cpus == "0-3,8-11,4-7");
  CHECK(near(0, 0).memory_nodes == std::vector<int32_t>{0, 1});
  CHECK(near(8'000, 0, {{neighbour, 4'001, 0}}).cpus == "");
  CHECK(HostNear(spec, {}).cpus == "");
  spec.devices[7].numa_node = -1;
  CHECK(near(0, 0).cpus == "");
}

TEST_CASE("CPU lists are counted") {
  CHECK(CountCpus("0-15,32-47") == 32);
  CHECK(CountCpus("7") == 1);
  CHECK(CountCpus("") == 0);
  for (const char* wrong : {"a", "3-1", "1,", "-1", "1-", "0-65536"}) CHECK(CountCpus(wrong) == -1);
}

TEST_CASE("topologies follow their devices when these are reordered") {
  NodeSpec spec;
  testing::SetDevices({.name = "", .gpus = 3, .rows = {"X NV1 PIX", "NV1 X SYS", "PIX SYS X"}},
                      &spec);
  const DeviceTopology turned = Reordered(spec.topology, 3, {2, -1, 0, 1});
  CHECK(LinkBetween(turned, 4, 0, 2).link == LinkClass::kPix);
  CHECK(LinkBetween(turned, 4, 0, 3).link == LinkClass::kSys);
  CHECK(LinkBetween(turned, 4, 2, 3).link == LinkClass::kNvlink);
  CHECK(LinkBetween(turned, 4, 0, 1).link == LinkClass::kUnknown);
  std::swap(spec.devices[0], spec.devices[2]);
  SortDevices(spec);
  CHECK(spec.devices[0].uuid == "gpu0");
  CHECK(LinkBetween(spec.topology, 3, 2, 1).link == LinkClass::kNvlink);
}

TEST_CASE("equal nodes share one layout while any of them exists") {
  TestCluster cluster;
  const auto put = [&](uint32_t id, const Matrix& matrix, uint64_t epoch) {
    NodeSpec spec = testing::MakeNode(absl::StrCat("n", id), {});
    testing::SetDevices(matrix, &spec);
    for (Device& device : spec.devices) device.uuid += absl::StrCat("-", id);  // unique
    CHECK(cluster.Try(NodeRegistered{.id = NodeId{id}, .spec = spec, .epoch = epoch}).ok());
  };
  const uint32_t first = cluster.state().next_node_id().value;
  const auto layout = [&](uint32_t id) { return cluster.state().nodes().At(NodeId{id}).layout; };
  put(first, testing::HgxH100(), 1);
  put(first + 1, testing::HgxH100(), 1);
  CHECK(layout(first) == layout(first + 1));
  CHECK(cluster.state().interner().layout_count() == 1);
  put(first, testing::Dgx1(), 2);
  CHECK(layout(first) != layout(first + 1));
  CHECK(cluster.state().interner().layout_count() == 2);
  put(first + 1, testing::Dgx1(), 2);
  CHECK(layout(first) == layout(first + 1));
  CHECK(cluster.state().interner().layout_count() == 1);
  put(first, {.name = "none", .gpus = 0}, 3);
  CHECK(layout(first) == nullptr);
  CHECK(cluster.state().interner().layout_count() == 1);
}

TEST_CASE("a node rejects a topology of other devices") {
  TestCluster cluster;
  NodeSpec spec = testing::MakeNode("n", {});
  testing::SetDevices(testing::Ac922(), &spec);
  const auto put = [&] {
    const NodeId id = cluster.state().next_node_id();
    return cluster.Try(NodeRegistered{.id = id, .spec = spec, .epoch = 1});
  };
  spec.topology.between.pop_back();
  CHECK(absl::IsInvalidArgument(put()));
  spec.topology.between.push_back('\x7f');
  CHECK(absl::IsInvalidArgument(put()));
  spec.topology.between.back() = '\1';
  CHECK(put().ok());
}

// A job of one task that requests `gpus` GPUs, with no link worse than `least`.
JobId SubmitLinked(TestCluster& cluster, int gpus, LinkClass least) {
  const Queue* queue = cluster.state().FindQueue("default");
  const QueueId leaf = queue != nullptr ? queue->id : cluster.AddQueue("default");
  const std::string name = absl::StrCat("j", cluster.state().next_job_id().value);
  JobSpec spec = testing::MakeJob(name, leaf, {.groups = {{.gpus = gpus}}});
  spec.groups[0].shape.devices[0].min_link = least;
  const JobId id = cluster.state().next_job_id();
  cluster.Must(JobSubmitted{.id = id, .spec = std::move(spec)});
  return id;
}

const ConstraintCount* CountOf(const Explanation& explanation, absl::string_view name) {
  for (const ConstraintCount& count : explanation.groups.at(0).constraints) {
    if (count.name == name) return &count;
  }
  return nullptr;
}

TEST_CASE("link requirements are explained, and a remedy drops them") {
  TestCluster cluster;
  for (uint32_t i = 0; i < 3; ++i) {
    NodeSpec spec = testing::MakeNode(absl::StrCat("n", i), {.gpus = i == 2 ? 2 : 0});
    if (i < 2) testing::SetDevices(testing::Ac922(), &spec);
    const NodeId id = cluster.state().next_node_id();
    cluster.Must(NodeRegistered{.id = id, .spec = std::move(spec), .epoch = 1});
  }
  const JobId job = SubmitLinked(cluster, 3, LinkClass::kNvlink);
  cluster.Settle();
  CHECK(cluster.job(job).status.state == JobState::kPending);
  const Explanation why = Explain(cluster.state(), cluster.policies(), job, cluster.now());
  REQUIRE(CountOf(why, "links") != nullptr);
  CHECK(CountOf(why, "links")->nodes_alone == 2);
  CHECK(CountOf(why, "size")->nodes_alone == 1);
  CHECK(why.groups[0].blocking == std::vector<std::string>{"links"});
  const auto any_links = [](const Remedy& remedy) { return remedy.kind == RemedyKind::kAnyLinks; };
  const auto remedy = std::find_if(why.remedies.begin(), why.remedies.end(), any_links);
  REQUIRE(remedy != why.remedies.end());
  CHECK(remedy->device_kind == "gpu");
  CHECK(remedy->starts_now);
  const JobId fits = SubmitLinked(cluster, 2, LinkClass::kNvlink);
  cluster.Settle();
  CHECK(cluster.Where(fits) == "n0");
}

// A job of `tasks` tasks, each with GPUs and NICs.
JobId SubmitWithNics(TestCluster& cluster, int tasks, int gpus, int nics) {
  const Queue* queue = cluster.state().FindQueue("default");
  const QueueId leaf = queue != nullptr ? queue->id : cluster.AddQueue("default");
  const std::string name = absl::StrCat("j", cluster.state().next_job_id().value);
  JobSpec spec =
      testing::MakeJob(name, leaf, {.groups = {{.replicas = tasks, .cpu = 0, .gpus = gpus}}});
  std::vector<DeviceRequest>& devices = spec.groups[0].shape.devices;
  if (nics > 0) devices.push_back({.kind = "nic", .count = nics});
  const JobId id = cluster.state().next_job_id();
  cluster.Must(JobSubmitted{.id = id, .spec = std::move(spec)});
  return id;
}

// "gpu0 gpu1 nic1", on any node.
std::string DevicesOf(const TestCluster& cluster, JobId job, size_t task = 0) {
  const Task& of = cluster.job(job).tasks[task];
  const Node& node = cluster.state().nodes().At(of.node);
  std::vector<std::string> names;
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    if (of.devices.Has(i)) names.push_back(node.spec.devices[i].uuid);
  }
  return absl::StrJoin(names, " ");
}

void AddMachine(TestCluster& cluster, const std::string& name, const Matrix& matrix) {
  NodeSpec spec = testing::MakeNode(name, {});
  testing::SetDevices(matrix, &spec);
  const NodeId id = cluster.state().next_node_id();
  cluster.Must(NodeRegistered{.id = id, .spec = std::move(spec), .epoch = 1});
}

TEST_CASE("a task gets the NICs nearest to its GPUs, and GPUs whose NICs are free") {
  TestCluster cluster;
  AddMachine(cluster, "n", testing::HgxH100());
  const JobId alone = SubmitWithNics(cluster, 1, 1, 0);
  cluster.Settle();
  CHECK(DevicesOf(cluster, alone) == "gpu0");
  const JobId pair = SubmitWithNics(cluster, 1, 2, 2);
  cluster.Settle();
  CHECK(DevicesOf(cluster, pair) == "gpu1 gpu2 nic1 nic2");
  const JobId other = SubmitWithNics(cluster, 1, 1, 1);
  cluster.Settle();
  CHECK(DevicesOf(cluster, other) == "gpu3 nic3");
}

TEST_CASE("a gang uses the same rails on all its nodes") {
  TestCluster cluster;
  AddMachine(cluster, "n1", testing::HgxH100());
  AddMachine(cluster, "n2", testing::HgxH100());
  const JobId first = SubmitWithNics(cluster, 1, 4, 0);
  cluster.Settle();
  CHECK(DevicesOf(cluster, first) == "gpu0 gpu1 gpu2 gpu3");
  const JobId gang = SubmitWithNics(cluster, 2, 4, 4);
  cluster.Settle();
  CHECK(cluster.Where(gang) == "n1 n2");
  CHECK(DevicesOf(cluster, gang, 0) == "gpu4 gpu5 gpu6 gpu7 nic4 nic5 nic6 nic7");
  CHECK(DevicesOf(cluster, gang, 1) == "gpu4 gpu5 gpu6 gpu7 nic4 nic5 nic6 nic7");
}

TEST_CASE("only sets that meet the floor count as room") {
  TestCluster cluster;
  AddMachine(cluster, "n1", testing::Ac922());
  AddMachine(cluster, "n2", testing::Ac922());
  const JobId one = SubmitWithNics(cluster, 1, 1, 0);
  cluster.Settle();
  CHECK(DevicesOf(cluster, one) == "gpu0");
  const JobId two = SubmitLinked(cluster, 2, LinkClass::kNvlink);
  cluster.Settle();
  CHECK(DevicesOf(cluster, two) == "gpu2 gpu3");
  const JobId more = SubmitLinked(cluster, 2, LinkClass::kNvlink);
  const JobId last = SubmitLinked(cluster, 2, LinkClass::kNvlink);
  cluster.Settle();
  CHECK(cluster.Where(more) == "n2");
  CHECK(cluster.Where(last) == "n2");
  const JobId waits = SubmitLinked(cluster, 2, LinkClass::kNvlink);
  cluster.Settle();
  CHECK(cluster.job(waits).status.state == JobState::kPending);
}

TEST_CASE("the link constraint is not counted for jobs without link requirements") {
  TestCluster cluster;
  cluster.AddNode("n1", {.gpus = 2});
  const JobId job = cluster.Submit("j", {.groups = {{.gpus = 4}}});
  cluster.Settle();
  const Explanation why = Explain(cluster.state(), cluster.policies(), job, cluster.now());
  CHECK(CountOf(why, "links") == nullptr);
}

TEST_CASE("a kind whose devices span two words of the device set") {
  KindLayout layout;
  layout.first = 60;
  layout.count = 8;
  DeviceSet set;
  for (size_t i : {60, 63, 64, 67, 68, 5}) set.Add(i);
  CHECK(Digits(layout.MaskOf(set)) == "0347");
  DeviceSet back = layout.SetOf(Mask("0347"));
  DeviceSet expected;
  for (size_t i : {60, 63, 64, 67}) expected.Add(i);
  CHECK(back == expected);
  layout.first = 70;
  CHECK(layout.MaskOf(layout.SetOf(Mask("0347"))) == Mask("0347"));
}

}  // namespace
}  // namespace berth
