// How long it takes to choose the devices of a task on one node.
#include <algorithm>
#include <bit>
#include <chrono>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/engine/search/device_choice.h"
#include "core/model/apply.h"
#include "tests/bench/bench.h"
#include "tests/bench/core_figures.h"
#include "tests/unit/core/testing/layouts.h"

namespace berth::bench {
namespace {

using testing::Matrix;

struct Case {
  std::string name;
  Matrix matrix;
  bool nics = false;       // one per requested GPU
  int64_t floor_gbps = 0;  // between them
};

// Sixteen GPUs with irregular links, the worst case for the search.
Matrix Irregular() {
  constexpr int kGpus = 16;
  static const char* const kCells[] = {"NV1", "NV2", "PIX", "NODE", "SYS"};
  std::mt19937 random(3);
  std::vector<std::vector<std::string>> cells(kGpus, std::vector<std::string>(kGpus, "X"));
  for (size_t a = 0; a < kGpus; ++a) {
    for (size_t b = a + 1; b < kGpus; ++b) cells[a][b] = cells[b][a] = kCells[random() % 5];
  }
  Matrix matrix{
      .name = "irregular", .gpus = kGpus, .rows = {}, .numa = testing::HalfAndHalf(kGpus)};
  for (const auto& row : cells) matrix.rows.push_back(absl::StrJoin(row, " "));
  return matrix;
}

// Sixteen PCIe GPUs: two per switch, eight per socket.
Matrix Pcie16() {
  constexpr int kGpus = 16;
  Matrix matrix{.name = "pcie",
                .gpus = kGpus,
                .rows = testing::BlockRows(kGpus, 8, "NODE", "SYS"),
                .numa = testing::HalfAndHalf(kGpus)};
  for (size_t gpu = 0; gpu < kGpus; ++gpu) {
    std::vector<std::string> cells = absl::StrSplit(matrix.rows[gpu], ' ');
    cells[gpu ^ 1] = "PIX";
    matrix.rows[gpu] = absl::StrJoin(cells, " ");
  }
  return matrix;
}

std::vector<Case> Cases() {
  return {{"8_dgx1", testing::Dgx1()},
          {"8_hgx_nics", testing::HgxH100(), /*nics=*/true},
          {"8_dgx1_floor", testing::Dgx1(), /*nics=*/false, /*floor_gbps=*/400},
          {"16_dgx2", testing::Dgx2()},
          {"16_pcie", Pcie16()},
          {"16_irregular", Irregular()}};
}

ClusterState OneNode(const Matrix& matrix) {
  ClusterState state;
  NodeSpec spec;
  spec.name = "n";
  testing::SetDevices(matrix, &spec);
  NodeRegistered event{.id = state.next_node_id(), .spec = spec, .epoch = 1};
  if (!Apply(state, {absl::UnixEpoch(), std::move(event)}).ok()) Fail("cannot add the node");
  return state;
}

ShapeEntry Asking(const Case& of, int32_t count) {
  ShapeEntry entry;
  DeviceRequest& gpus = entry.shape.devices.emplace_back();
  gpus.kind = "gpu";
  gpus.count = count;
  gpus.min_bandwidth_gbps = of.floor_gbps;
  if (!of.nics) return entry;
  DeviceRequest& nics = entry.shape.devices.emplace_back();
  nics.kind = "nic";
  nics.count = count;
  return entry;
}

// Some of the GPUs, and the NICs with the same bits, are in use. Returns the minimum of several
// runs, because other programs run on this machine.
double Microseconds(const DeviceChoice& choice, const Node& node, int gpus, uint64_t used) {
  DeviceSet taken;
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    if ((used >> (i % static_cast<size_t>(gpus)) & 1) != 0) taken.Add(i);
  }
  const Offer offer{.node = node, .free = node.capacity, .used = {.whole = taken, .shared = {}}};
  constexpr int kTries = 5;
  double least = 1e9;
  for (int i = 0; i < kTries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto chosen = choice.Choose(offer);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    if (chosen.has_value() && chosen->Overlaps(taken)) Fail("a device in use was chosen");
    least = std::min(least, took.count());
  }
  return least;
}

Figures Measure(const Case& of, int64_t masks) {
  const ClusterState state = OneNode(of.matrix);
  const Node& node = state.nodes().At(NodeId{state.next_node_id().value - 1});
  std::mt19937 random(1);
  double sum = 0, most = 0;
  int64_t choices = 0;
  for (int64_t i = 0; i < masks; ++i) {
    const uint64_t used = i == 0 ? 0 : random() & ((uint64_t{1} << of.matrix.gpus) - 1);
    const int free = of.matrix.gpus - std::popcount(used);
    for (int32_t count = 1; count <= free; ++count) {
      const ShapeEntry entry = Asking(of, count);
      const DeviceChoice choice(ShapeRequest{entry, state.interner()});
      const double us = Microseconds(choice, node, of.matrix.gpus, used);
      sum += us;
      most = std::max(most, us);
      ++choices;
    }
  }
  return {{"us", sum / static_cast<double>(choices)},
          {"longest_us", most},
          {"choices", static_cast<double>(choices)}};
}

}  // namespace

std::vector<Row> CoreDevices(const Options& options) {
  std::vector<Row> rows;
  for (const Case& of : Cases()) {
    if (!options.Wants(of.name)) continue;
    rows.push_back(FiguresRow("core.devices", "us", "longest_us", Runs(options, 3, [&] {
                                return Measure(of, Scaled(options, 500, 5));
                              })));
    rows.back().texts["case"] = of.name;
  }
  return rows;
}

}  // namespace berth::bench
