// topology.load: loads a store with 100,000 nodes in 10,000 HyperNodes (of 10 nodes each; 100 above
// those; every node also in one of 12,500 NVLink domains of 8). The loaded state must be
// consistent.
//
// topology.join: the time that Membership needs to find the HyperNodes of the same nodes at once,
// if each HyperNode selects its members with a regular expression.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/model/apply.h"
#include "core/model/state_editor.h"
#include "server/planning/membership.h"
#include "storage/load.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "storage/turn_recorder.h"
#include "tests/bench/core_figures.h"

namespace berth::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Member = HyperNodeMember;

constexpr int64_t kNodesPerRack = 10;
constexpr int64_t kRacksPerSpine = 100;
constexpr int64_t kNodesPerDomain = 8;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string NodeName(int64_t node) {
  return absl::StrFormat("rack%05d-n%06d", node / kNodesPerRack, node);
}

NodeSpec SomeNode(int64_t node) {
  NodeSpec spec;
  spec.name = NodeName(node);
  spec.address = spec.name + ".cluster.example:7443";
  spec.cpu_millis = 192'000;
  spec.memory_bytes = int64_t{2} << 40;
  for (int64_t gpu = 0; gpu < 8; ++gpu) {
    spec.devices.push_back({.kind = "gpu",
                            .uuid = absl::StrFormat("GPU-%08x-%04x", node, gpu),
                            .model = "H100",
                            .memory_bytes = int64_t{80} << 30,
                            .pci_bus_id = absl::StrFormat("0000:%02x:00.0", 16 + gpu)});
  }
  spec.labels = {{"topology.berth/nvlink", absl::StrCat("d", node / kNodesPerDomain)}};
  return spec;
}

// `exact`: lists the name of every node, as importers do; otherwise one expression for each rack.
std::vector<HyperNodeSpec> SomeTree(int64_t nodes, bool exact) {
  std::vector<HyperNodeSpec> tree;
  const int64_t racks = nodes / kNodesPerRack;
  for (int64_t r = 0; r < racks; ++r) {
    HyperNodeSpec& rack = tree.emplace_back();
    rack.name = absl::StrCat("rack-", r);
    rack.tier_name = "rack";
    if (!exact) {
      rack.members = {{.match = Member::Match::kRegex, .text = absl::StrFormat("rack%05d-n.*", r)}};
    }
    for (int64_t n = 0; n < kNodesPerRack && exact; ++n) {
      rack.members.push_back({.text = NodeName(r * kNodesPerRack + n)});
    }
  }
  for (int64_t s = 0; s * kRacksPerSpine < racks; ++s) {
    HyperNodeSpec& spine = tree.emplace_back();
    spine.name = absl::StrCat("spine-", s);
    spine.tier = 2;
    for (int64_t r = s * kRacksPerSpine; r < std::min(racks, (s + 1) * kRacksPerSpine); ++r) {
      spine.members.push_back({.type = Member::Type::kHyperNode, .text = absl::StrCat("rack-", r)});
    }
  }
  for (int64_t d = 0; d * kNodesPerDomain < nodes; ++d) {
    HyperNodeSpec& domain = tree.emplace_back();
    domain.name = absl::StrCat("nvl-", d);
    domain.kind = "nvlink";
    domain.members = {
        {.match = Member::Match::kLabel, .text = absl::StrCat("topology.berth/nvlink=d", d)}};
  }
  return tree;
}

template <class Happen>
void Build(const ClusterState& state, int64_t nodes, const Happen& happen) {
  for (int64_t n = 0; n < nodes; ++n) {
    happen(NodeRegistered{state.next_node_id(), SomeNode(n), 1, "agent", "boot", "0.1"});
  }
  Membership membership;
  auto events = membership.Plan(state, SomeTree(nodes, true), {});
  BERTH_CHECK(events.ok());
  for (EventBody& event : *events) happen(std::move(event));
}

void FillStore(RocksDbStore& store, int64_t nodes) {
  ClusterState state;
  TurnRecorder recorder(state);
  const Time now = absl::FromUnixSeconds(1'795'000'000);
  recorder.Begin(1, now);
  Build(state, nodes, [&](EventBody event) {
    BERTH_CHECK(recorder.Apply({now, std::move(event)}).ok());
  });
  const std::optional<Batch> batch = recorder.Finish();
  BERTH_CHECK(batch.has_value() && store.Append({&*batch}).ok());
}

Figures Load(int64_t nodes) {
  const std::string directory =
      (std::filesystem::temp_directory_path() / absl::StrCat("berth-bench-", getpid())).string();
  {
    auto store = RocksDbStore::Open({.directory = directory});
    BERTH_CHECK(store.ok());
    FillStore(**store, nodes);
  }
  Figures figures;
  const Clock::time_point begin = Clock::now();
  auto store = RocksDbStore::Open({.directory = directory});
  BERTH_CHECK(store.ok());
  figures["open"] = SecondsSince(begin);
  ClusterState state;
  const auto summary = LoadState(
      **store, state, [](StoredRequest) {}, nullptr);
  figures["seconds"] = SecondsSince(begin);
  BERTH_CHECK(summary.ok() && CheckConsistency(state).ok());
  figures["nodes"] = static_cast<double>(summary->nodes);
  figures["hyper_nodes"] = static_cast<double>(summary->hyper_nodes);
  store->reset();
  std::filesystem::remove_all(directory);
  return figures;
}

Figures Join(int64_t nodes) {
  ClusterState state;
  const auto happen = [&](EventBody event) {
    BERTH_CHECK(Apply(state, {absl::UnixEpoch(), std::move(event)}).ok());
  };
  Membership membership;
  auto tree = membership.Plan(state, SomeTree(nodes, false), {});
  BERTH_CHECK(tree.ok());
  for (EventBody& event : *tree) happen(std::move(event));
  std::vector<NodeId> all;
  for (int64_t n = 0; n < nodes; ++n) {
    all.push_back(state.next_node_id());
    happen(NodeRegistered{all.back(), SomeNode(n), 1, "agent", "boot", "0.1"});
  }
  Figures figures;
  const Clock::time_point begin = Clock::now();
  std::vector<EventBody> events = membership.Follow(state, all);
  figures["seconds"] = SecondsSince(begin);
  for (EventBody& event : events) happen(std::move(event));
  BERTH_CHECK(CheckConsistency(state).ok());
  const Clock::time_point again = Clock::now();
  BERTH_CHECK(membership.Follow(state, absl::MakeConstSpan(all).subspan(0, 1)).empty());
  figures["one_node_us"] = SecondsSince(again) * 1e6;
  figures["nodes"] = static_cast<double>(nodes);
  figures["hyper_nodes"] = static_cast<double>(state.hyper_nodes().size());
  return figures;
}

}  // namespace

std::vector<Row> TopologyLoad(const Options& options) {
  const int64_t nodes = Scaled(options, 100'000, 1'000);
  return {FiguresRow("topology.load", "s", "seconds",
                     Runs(options, 3, [nodes] { return Load(nodes); }))};
}

std::vector<Row> TopologyJoin(const Options& options) {
  const int64_t nodes = Scaled(options, 100'000, 1'000);
  return {FiguresRow("topology.join", "s", "seconds",
                     Runs(options, 3, [nodes] { return Join(nodes); }))};
}

}  // namespace berth::bench
