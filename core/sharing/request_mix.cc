#include "core/sharing/request_mix.h"

#include <algorithm>

#include "absl/container/btree_set.h"
#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"

namespace berth {
namespace {

bool WellFormed(const Request& request, size_t models) {
  const bool share = request.share > 0 && request.devices == 0;
  const bool whole = request.share == 0 && request.devices >= 0;
  return (share || whole) && request.share < kWholeDevice && request.devices <= kMaxRoomDevices &&
         request.cpu_millis >= 0 && request.cpu_millis <= kMaxRoomCpuMillis &&
         request.memory_mib == 0 && (models == kMaxMixModels || request.models >> models == 0);
}

absl::Status CheckType(const RequestMix& mix, size_t i) {
  const RequestType& type = mix.types[i];
  const auto wrong = [i](const char* what) {
    return absl::InvalidArgumentError(absl::StrCat("types[", i, "]: ", what));
  };
  if (!WellFormed(type.request, mix.models.size())) return wrong("not a valid request");
  if (i > 0 && mix.types[i - 1].request >= type.request) return wrong("not in order");
  if (type.weight < 1 || type.weight > kMaxMixWeight) return wrong("weight out of range");
  if (type.value < 0 || type.value > type.request.amount()) return wrong("value out of range");
  if (!mix.priced && type.value != 0) return wrong("value in a mix that is not priced");
  return absl::OkStatus();
}

}  // namespace

int64_t RequestMix::TotalWeight() const {
  int64_t total = 0;
  for (const RequestType& type : types) total += type.weight;
  return total;
}

const RequestType* RequestMix::Find(const Request& request) const {
  const auto it = std::lower_bound(
      types.begin(), types.end(), request,
      [](const RequestType& type, const Request& wanted) { return type.request < wanted; });
  return it != types.end() && it->request == request ? &*it : nullptr;
}

absl::Status CheckMix(const RequestMix& mix) {
  if (mix.models.size() > kMaxMixModels) return absl::InvalidArgumentError("too many models");
  const absl::btree_set<std::string> names(mix.models.begin(), mix.models.end());
  if (names.size() != mix.models.size()) return absl::InvalidArgumentError("duplicate model");
  if (mix.types.size() > kMaxMixTypes) return absl::InvalidArgumentError("too many types");
  for (size_t i = 0; i < mix.types.size(); ++i) {
    const absl::Status status = CheckType(mix, i);
    if (!status.ok()) return status;
  }
  if (mix.TotalWeight() > kMaxMixWeight) return absl::InvalidArgumentError("too much weight");
  if (mix.cpu_millis_per_device < 0 || mix.cpu_millis_per_device > kMaxRoomCpuMillis) {
    return absl::InvalidArgumentError("cpu_millis_per_device out of range");
  }
  if (static_cast<size_t>(mix.score) >= kMixScores) {
    return absl::InvalidArgumentError("unknown score");
  }
  if (mix.mib_per_core < 0 || mix.mib_per_core > kMaxRoomMemoryMib) {
    return absl::InvalidArgumentError("mib_per_core out of range");
  }
  return absl::OkStatus();
}

RequestMix MixOf(std::vector<std::string> models, std::vector<RequestType> arrivals) {
  std::sort(arrivals.begin(), arrivals.end(),
            [](const RequestType& a, const RequestType& b) { return a.request < b.request; });
  RequestMix mix;
  mix.models = std::move(models);
  absl::int128 cpu = 0;
  absl::int128 amount = 0;
  for (const RequestType& arrival : arrivals) {
    cpu += absl::int128(arrival.weight) * arrival.request.cpu_millis;
    amount += absl::int128(arrival.weight) * arrival.request.amount();
    if (!mix.types.empty() && mix.types.back().request == arrival.request) {
      mix.types.back().weight += arrival.weight;
    } else {
      mix.types.push_back({.request = arrival.request, .weight = arrival.weight});
    }
  }
  if (amount > 0) {
    mix.cpu_millis_per_device = static_cast<int64_t>(
        std::min<absl::int128>(cpu * kWholeDevice / amount, kMaxRoomCpuMillis));
  }
  return mix;
}

}  // namespace berth
