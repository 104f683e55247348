#include "server/convert/values.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/strip.h"
#include "support/quantity.h"

namespace berth {

std::vector<NamedAmount> SortedByName(std::vector<NamedAmount> amounts) {
  std::sort(amounts.begin(), amounts.end(),
            [](const NamedAmount& a, const NamedAmount& b) { return a.name < b.name; });
  return amounts;
}

std::vector<NamedAmount> AmountsFrom(const google::protobuf::Map<std::string, int64_t>& whole) {
  std::vector<NamedAmount> result;
  result.reserve(whole.size());
  for (const auto& [name, amount] : whole) result.push_back({name, amount * UnitOf(name)});
  return SortedByName(std::move(result));
}

std::vector<NamedAmount> AmountsFrom(const v1::ResourceList& list) {
  std::vector<NamedAmount> result;
  for (const auto& [name, count] : list.counts()) {
    result.push_back({name, std::llround(count * kWhole)});
  }
  if (list.has_cpu_millis()) result.push_back({"cpu", list.cpu_millis()});
  if (list.has_memory_bytes()) result.push_back({"memory", list.memory_bytes()});
  if (list.has_scratch_bytes()) result.push_back({kScratchName, list.scratch_bytes()});
  return SortedByName(std::move(result));
}

void AddScratch(int64_t bytes, std::vector<NamedAmount>* amounts) {
  if (bytes == 0) return;
  amounts->push_back({kScratchName, bytes});
  *amounts = SortedByName(*std::move(amounts));
}

void ToProto(const std::vector<NamedAmount>& amounts, v1::ResourceList* out) {
  for (const NamedAmount& entry : amounts) {
    if (entry.name == "cpu") {
      out->set_cpu_millis(entry.amount);
    } else if (entry.name == "memory") {
      out->set_memory_bytes(entry.amount);
    } else if (entry.name == kScratchName) {
      out->set_scratch_bytes(entry.amount);
    } else {
      (*out->mutable_counts())[entry.name] = InUnits(entry.amount, kWhole);
    }
  }
}

void ToProto(const Resources& resources, const Interner& interner, v1::ResourceList* out) {
  out->set_cpu_millis(resources[kCpu]);
  out->set_memory_bytes(resources[kMemory]);
  if (resources[kScratch] != 0) out->set_scratch_bytes(resources[kScratch]);
  for (size_t i = kFixedKinds; i < interner.kind_count(); ++i) {
    const ResourceKind kind{static_cast<uint8_t>(i)};
    if (resources[kind] == 0) continue;
    (*out->mutable_counts())[interner.KindName(kind)] = InUnits(resources[kind], kWhole);
  }
}

std::string AmountText(const std::string& resource, int64_t amount) {
  if (resource == "cpu") return FormatCpuMillis(amount);
  return IsFixedKind(resource) ? FormatBytes(amount) : AmountText(amount, kWhole);
}

void RenderUuids(const Node& node, const DeviceSet& devices,
                 google::protobuf::RepeatedPtrField<std::string>* out) {
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    if (devices.Has(i)) *out->Add() = node.spec.devices[i].uuid;
  }
}

bool RequestsByMemory(const v1::DeviceRequest& device) {
  return device.memory_bytes() > 0 && device.count() == 0 && device.share() == 0 &&
         device.cores() == 0 && device.mig().empty();
}

bool RequestsShare(const v1::DeviceRequest& device) {
  return device.share() != 0 || device.cores() != 0 || RequestsByMemory(device);
}

Strategy StrategyFrom(v1::Strategy strategy) {
  if (strategy == v1::SPREAD) return Strategy::kSpread;
  if (strategy == v1::BINPACK) return Strategy::kBinpack;
  if (strategy == v1::COLOCATE) return Strategy::kColocate;
  return Strategy::kDefault;
}

v1::Strategy StrategyToApi(Strategy strategy) {
  switch (strategy) {
    case Strategy::kDefault:
      break;
    case Strategy::kBinpack:
      return v1::BINPACK;
    case Strategy::kSpread:
      return v1::SPREAD;
    case Strategy::kColocate:
      return v1::COLOCATE;
  }
  return v1::STRATEGY_UNSPECIFIED;
}

std::string ShortName(absl::string_view enum_value_name, absl::string_view prefix) {
  return std::string(absl::StripPrefix(enum_value_name, prefix));
}

}  // namespace berth
