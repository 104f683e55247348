#include "clients/cli/topology/slurm_blocks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace berth {
namespace {

constexpr char kBlockTier[] = "block";

absl::Status CheckSizes(const std::vector<int64_t>& sizes) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1) return absl::InvalidArgumentError("a block size must be at least 1");
    if (i == 0) continue;
    const int64_t factor = sizes[i] / sizes[0];
    const bool power = sizes[i] % sizes[0] == 0 && (factor & (factor - 1)) == 0;
    if (power && sizes[i] > sizes[i - 1]) continue;
    return absl::InvalidArgumentError(absl::StrCat("block size ", sizes[i], " must be above ",
                                                   sizes[i - 1], " and a power of two times ",
                                                   sizes[0]));
  }
  if (sizes.size() > static_cast<size_t>(kMaxTiers))
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxTiers, " block sizes"));
  return absl::OkStatus();
}

// Groups `below`, `each` at a time. `factor` is the number of blocks in one group.
std::vector<NodeGroup> Aggregate(const std::vector<NodeGroup>& below, size_t each, size_t factor,
                                 int tier, int64_t size) {
  std::vector<NodeGroup> groups;
  for (size_t begin = 0; begin < below.size(); begin += each) {
    const size_t end = std::min(below.size(), begin + each);
    NodeGroup group;
    group.opaque = true;
    group.tier = tier;
    group.tier_name = absl::StrCat(kBlockTier, "-", size);
    group.place = below[begin].place;
    std::string first;
    for (size_t i = begin; i < end; ++i) {
      group.children.push_back(below[i].id);
      const std::string& block = below[i].base_name.empty() ? below[i].id : below[i].base_name;
      if (first.empty() || block < first) first = block;
    }
    group.base_name = first;
    group.id = absl::StrCat(first, "-x", factor);
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

absl::Status AddBlocks(std::vector<NodeGroup> blocks, const std::vector<int64_t>& sizes,
                       Imported* imported) {
  const absl::Status status = CheckSizes(sizes);
  if (!status.ok()) return status;
  for (NodeGroup& block : blocks) {
    block.tier = 1;
    block.tier_name = kBlockTier;
  }
  std::vector<NodeGroup> below = blocks;
  const auto keep = [&](std::vector<NodeGroup>& groups) {
    for (NodeGroup& group : groups) {
      if (group.opaque) group.base_name.clear();  // the id has it, with the factor
      imported->groups.push_back(std::move(group));
    }
  };
  keep(blocks);
  for (size_t i = 1; i < sizes.size(); ++i) {
    if (below.size() <= 1) {
      imported->warnings.push_back(absl::StrCat(
          "block size ", sizes[i], " left out: all blocks are already in one of ", sizes[i - 1]));
      break;
    }
    const auto each = static_cast<size_t>(std::min<int64_t>(sizes[i] / sizes[i - 1], kMaxGroups));
    const auto factor = static_cast<size_t>(sizes[i] / sizes[0]);
    std::vector<NodeGroup> groups =
        Aggregate(below, each, factor, static_cast<int>(i) + 1, sizes[i]);
    below = groups;
    keep(groups);
  }
  return absl::OkStatus();
}

}  // namespace berth
