// How GPUs can be partitioned, compared with what NVIDIA publishes.
#include "core/devices/mig_geometry.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "absl/strings/str_join.h"

namespace berth {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Names and memory as NVML reports them.
const MigGeometry& A100() { return *MigGeometryOf("NVIDIA A100-SXM4-40GB", 40536 * kMiB); }
const MigGeometry& H100() { return *MigGeometryOf("NVIDIA H100 80GB HBM3", 81559 * kMiB); }

std::string Names(const std::vector<MigPart>& parts) {
  return absl::StrJoin(parts, " ", [](std::string* out, const MigPart& part) {
    absl::StrAppend(out, part.profile, "@", part.start);
  });
}

// Whether the parts can be created in this order, each at its place.
bool Valid(const MigGeometry& geometry, const std::vector<MigPart>& parts) {
  std::vector<MigPart> placed;
  for (const MigPart& part : parts) {
    const std::vector<MigPart> fit = MigPartsBeside(geometry, placed);
    if (std::find(fit.begin(), fit.end(), part) == fit.end()) return false;
    placed.push_back(part);
  }
  return true;
}

// All sets of instances to which nothing can be added, as the compute slices of their profiles,
// largest first: "4g 2g 1g". Only profiles in `names`.
void Maximal(const MigGeometry& geometry, const std::set<std::string>& names,
             std::vector<MigPart>& placed, std::set<std::string>* found) {
  bool any = false;
  for (const MigPart& part : MigPartsBeside(geometry, placed)) {
    if (!names.contains(part.profile)) continue;
    any = true;
    if (!placed.empty() && part.start < placed.back().start) continue;  // ordered by start
    placed.push_back(part);
    Maximal(geometry, names, placed, found);
    placed.pop_back();
  }
  if (any) return;
  std::vector<std::string> parts;
  for (const MigPart& part : placed) parts.push_back(part.profile.substr(0, 2));
  std::sort(parts.rbegin(), parts.rend());
  found->insert(absl::StrJoin(parts, " "));
}

TEST_CASE("profiles, their slices and numbers are the published ones") {
  struct Published {
    const char* model;
    int64_t mebibytes;
    std::vector<std::string> profiles;
  };
  const std::vector<Published> all = {
      {"NVIDIA A100-PCIE-40GB",
       40536,
       {"1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}},
      {"NVIDIA A100 80GB PCIe",
       81251,
       {"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}},
      {"NVIDIA H100 PCIe",
       81559,
       {"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}},
      {"NVIDIA H100 NVL",
       95830,
       {"1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"}},
      {"NVIDIA H200",
       143771,
       {"1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"}},
      {"NVIDIA B200",
       183359,
       {"1g.23gb", "1g.23gb+me", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"}}};
  for (const Published& gpu : all) {
    INFO(gpu.model);
    const MigGeometry* geometry = MigGeometryOf(gpu.model, gpu.mebibytes * kMiB);
    REQUIRE(geometry != nullptr);
    std::vector<std::string> names;
    std::vector<int> compute, memory, most;
    for (const MigProfile& profile : geometry->profiles) {
      names.push_back(profile.name);
      compute.push_back(profile.compute_slices);
      memory.push_back(profile.memory_slices);
      most.push_back(profile.most);
    }
    CHECK(names == gpu.profiles);
    CHECK(compute == std::vector<int>{1, 1, 1, 2, 3, 4, 7});
    CHECK(memory == std::vector<int>{1, 1, 2, 2, 4, 4, 8});
    CHECK(most == std::vector<int>{7, 1, 4, 3, 2, 1, 1});
  }
}

TEST_CASE("the number of instances of one profile that fit is the published one") {
  for (const MigProfile& profile : H100().profiles) {
    std::vector<MigPart> placed;
    for (bool more = true; more;) {
      more = false;
      for (const MigPart& part : MigPartsBeside(H100(), placed)) {
        if (part.profile != profile.name || more) continue;
        placed.push_back(part);
        more = true;
      }
    }
    INFO(profile.name);
    CHECK(static_cast<int>(placed.size()) == profile.most);
  }
}

TEST_CASE("placements on an empty GPU are those that nvidia-smi mig -lgipp prints") {
  std::map<std::string, std::vector<int>> starts;
  for (const MigPart& part : MigPartsBeside(A100(), {})) starts[part.profile].push_back(part.start);
  const std::map<std::string, std::vector<int>> printed = {{"1g.5gb", {0, 1, 2, 3, 4, 5, 6}},
                                                           {"1g.5gb+me", {0, 1, 2, 3, 4, 5, 6}},
                                                           {"1g.10gb", {0, 2, 4, 6}},
                                                           {"2g.10gb", {0, 2, 4}},
                                                           {"3g.20gb", {0, 4}},
                                                           {"4g.20gb", {0}},
                                                           {"7g.40gb", {0}}};
  CHECK(starts == printed);
}

// The A100 figure of NVIDIA's guide, without profiles added later.
TEST_CASE("the possible partitions of an A100 are those in NVIDIA's figure") {
  std::set<std::string> found;
  std::vector<MigPart> placed;
  Maximal(A100(), {"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}, placed, &found);
  const std::set<std::string> figure = {
      "7g",          "4g 3g",          "4g 2g 1g",          "4g 1g 1g 1g",         "3g 3g",
      "3g 2g 1g",    "3g 1g 1g 1g",    "3g 2g 2g",          "3g 2g 1g 1g",         "3g 1g 1g 1g 1g",
      "2g 2g 2g 1g", "2g 2g 1g 1g 1g", "2g 1g 1g 1g 1g 1g", "1g 1g 1g 1g 1g 1g 1g"};
  CHECK(found == figure);
}

TEST_CASE("parts that still fit overlap no existing part") {
  // From NVIDIA's guide: a 3g instance finds no place after badly placed 1g, 1g and 2g.
  const std::vector<MigPart> bad = {{"1g.5gb", 6}, {"1g.5gb", 0}, {"2g.10gb", 4}};
  const std::vector<MigPart> fit = MigPartsBeside(A100(), bad);
  CHECK(std::none_of(fit.begin(), fit.end(), [](const MigPart& p) { return p.profile[0] == '3'; }));
  CHECK(Names(fit) ==
        "1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb+me@1 1g.5gb+me@2 1g.5gb+me@3 1g.10gb@2 2g.10gb@2");
  CHECK(MigPartsBeside(A100(), std::vector<MigPart>{{"7g.40gb", 0}}).empty());
  // Room in memory is no room in compute: 4g and 3g leave nothing.
  CHECK(MigPartsBeside(A100(), std::vector<MigPart>{{"4g.20gb", 0}, {"3g.20gb", 4}}).empty());
}

TEST_CASE("a layout serves the first demand first, and partitions the rest") {
  const auto layout = [](std::vector<MigDemand> demand) {
    const std::vector<MigPart> parts = BestMigLayout(H100(), demand);
    CHECK(Valid(H100(), parts));
    return Names(parts);
  };
  CHECK(layout({{"3g.40gb", 2}}) == "3g.40gb@0 3g.40gb@4");
  CHECK(layout({{"3g.40gb", 9}}) == "3g.40gb@0 3g.40gb@4");
  CHECK(layout({{"7g.80gb", 1}, {"1g.10gb", 7}}) == "7g.80gb@0");
  CHECK(layout({{"1g.10gb", 7}, {"7g.80gb", 1}}) ==
        "1g.10gb@0 1g.10gb@1 1g.10gb@2 1g.10gb@3 1g.10gb@4 1g.10gb@5 1g.10gb@6");
  CHECK(layout({{"4g.40gb", 1}}) == "4g.40gb@0 1g.10gb@4 1g.10gb@5 1g.10gb@6");
  CHECK(layout({{"4g.40gb", 1}, {"2g.20gb", 1}}) == "4g.40gb@0 2g.20gb@4 1g.10gb@6");
  CHECK(layout({{"2g.20gb", 1}, {"3g.40gb", 1}, {"1g.20gb", 1}}) ==
        "1g.20gb@0 2g.20gb@2 3g.40gb@4");
  CHECK(layout({{"1g.20gb", 4}}) == "1g.20gb@0 1g.20gb@2 1g.20gb@4 1g.20gb@6");
  CHECK(layout({{"1g.10gb+me", 3}, {"3g.40gb", 1}}) ==
        "1g.10gb@0 1g.10gb@1 1g.10gb@2 1g.10gb+me@3 3g.40gb@4");
  const std::string sevenfold =
      "1g.10gb@0 1g.10gb@1 1g.10gb@2 1g.10gb@3 1g.10gb@4 1g.10gb@5 1g.10gb@6";
  CHECK(layout({}) == sevenfold);
  CHECK(layout({{"2g.10gb", 2}}) == sevenfold);  // a profile of another GPU
}

TEST_CASE("no geometry is guessed for an unknown GPU") {
  CHECK(MigGeometryOf("NVIDIA GB200", 185000 * kMiB) == nullptr);
  CHECK(MigGeometryOf("NVIDIA GH200 480GB", 97871 * kMiB) == nullptr);
  CHECK(MigGeometryOf("NVIDIA A100X", 81251 * kMiB) == nullptr);
  CHECK(MigGeometryOf("NVIDIA L40S", 46068 * kMiB) == nullptr);
  CHECK(MigGeometryOf("NVIDIA H100 80GB HBM3", 0) == nullptr);
  CHECK(MigGeometryOf("", 81559 * kMiB) == nullptr);
}

}  // namespace
}  // namespace berth
