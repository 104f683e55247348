#include "core/devices/device_layout.h"

#include <algorithm>

#include "core/devices/best_set.h"

namespace berth {
namespace {

void FillPairs(const DeviceTopology& topology, size_t devices, KindLayout* layout) {
  const size_t n = layout->count;
  layout->scores.assign(n * n, 0);
  layout->mb_per_s.assign(n * n, 0);
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = 0; b < n; ++b) {
      const DeviceLink link = LinkBetween(topology, devices, layout->first + a, layout->first + b);
      layout->scores[a * n + b] = ScoreOf(link);
      layout->mb_per_s[a * n + b] = MbPerS(link);
    }
  }
}

void FillNics(const LayoutKey& key, KindLayout* layout) {
  const auto is_nic = [](const auto& device) { return device.first == kNicKind; };
  const auto begin = std::find_if(key.devices.begin(), key.devices.end(), is_nic);
  const auto nics = static_cast<size_t>(std::count_if(begin, key.devices.end(), is_nic));
  layout->nic_near.assign(layout->count, 0);
  if (nics == 0 || nics > kMaxLaidOut || layout->kind == kNicKind) return;
  layout->nics = nics;
  layout->first_nic = static_cast<size_t>(begin - key.devices.begin());
  for (size_t a = 0; a < layout->count; ++a) {
    for (size_t nic = 0; nic < nics; ++nic) {
      const LinkScore score = ScoreOf(LinkBetween(key.topology, key.devices.size(),
                                                  layout->first + a, layout->first_nic + nic));
      layout->nic_scores.push_back(score);
      layout->nic_near[a] = std::max(layout->nic_near[a], score);
    }
  }
}

bool AnyKnown(const KindLayout& layout) {
  const auto known = [](LinkScore score) { return score > 0; };
  return std::any_of(layout.scores.begin(), layout.scores.end(), known) ||
         std::any_of(layout.nic_near.begin(), layout.nic_near.end(), known);
}

void FillNuma(const LayoutKey& key, KindLayout* layout) {
  std::vector<int32_t> known;
  for (size_t a = 0; a < layout->count; ++a) {
    const int32_t numa = key.devices[layout->first + a].second;
    auto at = std::find(known.begin(), known.end(), numa);
    if (at == known.end()) at = known.insert(known.end(), numa);
    layout->numa.push_back(static_cast<uint8_t>(at - known.begin()));
  }
}

bool AreTwins(const KindLayout& layout, size_t a, size_t b) {
  if (layout.numa[a] != layout.numa[b] || layout.nic_near[a] != layout.nic_near[b]) return false;
  for (size_t c = 0; c < layout.count; ++c) {
    if (c == a || c == b) continue;
    if (layout.Score(a, c) != layout.Score(b, c)) return false;
    if (layout.MbPerS(a, c) != layout.MbPerS(b, c)) return false;
  }
  return true;
}

void FillTwins(KindLayout* layout) {
  layout->earlier_twins.assign(layout->count, 0);
  for (size_t b = 0; b < layout->count; ++b) {
    for (size_t a = 0; a < b; ++a) {
      if (AreTwins(*layout, a, b)) layout->earlier_twins[b] |= KindMask{1} << a;
    }
  }
}

void FillTable(KindLayout* layout) {
  const size_t n = layout->count;
  if (n > KindLayout::kMaxTabled) return;
  std::vector<uint8_t> best(n << n, 0);
  for (KindMask candidates = 1; candidates < KindMask{1} << n; ++candidates) {
    for (int size = 1; size <= std::popcount(candidates); ++size) {
      const SetQuery query{.candidates = candidates, .size = size};
      const KindMask set = SearchBestSet(*layout, query);
      best[static_cast<size_t>(size - 1) << n | candidates] = static_cast<uint8_t>(set);
    }
  }
  layout->best = std::move(best);
}

KindMask MaskFrom(const DeviceSet& devices, size_t first, size_t count) {
  const size_t word = first / 64, shift = first % 64;
  KindMask mask = devices.bits[word] >> shift;
  if (shift > 0 && word == 0) mask |= devices.bits[1] << (64 - shift);
  return count == 64 ? mask : mask & ((KindMask{1} << count) - 1);
}

DeviceSet SetFrom(KindMask mask, size_t first) {
  const size_t word = first / 64, shift = first % 64;
  DeviceSet set;
  set.bits[word] = mask << shift;
  if (shift > 0 && word == 0) set.bits[1] = mask >> (64 - shift);
  return set;
}

}  // namespace

LayoutKey LayoutKeyOf(const NodeSpec& spec) {
  LayoutKey key{.devices = {}, .topology = spec.topology};
  key.devices.reserve(spec.devices.size());
  for (const Device& device : spec.devices) key.devices.emplace_back(device.kind, device.numa_node);
  return key;
}

KindMask KindLayout::MaskOf(const DeviceSet& devices) const {
  return MaskFrom(devices, first, count);
}
DeviceSet KindLayout::SetOf(KindMask mask) const { return SetFrom(mask, first); }
KindMask KindLayout::NicMaskOf(const DeviceSet& devices) const {
  return MaskFrom(devices, first_nic, nics);
}
DeviceSet KindLayout::NicSetOf(KindMask mask) const { return SetFrom(mask, first_nic); }

DeviceLayout::DeviceLayout(LayoutKey layout_key) : key_(std::move(layout_key)) {
  const LayoutKey& key = key_;
  if (key.topology.between.empty()) return;
  for (size_t first = 0; first < key.devices.size();) {
    size_t end = first;
    while (end < key.devices.size() && key.devices[end].first == key.devices[first].first) ++end;
    KindLayout layout;
    layout.kind = key.devices[first].first;
    layout.first = first;
    layout.count = end - first;
    first = end;
    if (layout.count > kMaxLaidOut) continue;
    FillPairs(key.topology, key.devices.size(), &layout);
    FillNics(key, &layout);
    if (!AnyKnown(layout)) continue;
    FillNuma(key, &layout);
    FillTwins(&layout);
    FillTable(&layout);
    kinds_.push_back(std::move(layout));
  }
}

const KindLayout* DeviceLayout::Of(const std::string& kind) const {
  for (const KindLayout& layout : kinds_) {
    if (layout.kind == kind) return &layout;
  }
  return nullptr;
}

}  // namespace berth
