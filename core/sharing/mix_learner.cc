#include "core/sharing/mix_learner.h"

#include <algorithm>
#include <utility>

#include "absl/numeric/bits.h"

namespace berth {
namespace {

constexpr size_t kExactTypes = kMaxMixTypes / 4 * 3;
constexpr int64_t kCoarseCpuMillis = 8000;
constexpr int32_t kCoarseShare = 100;

// Rounds memory so that few distinct amounts remain.
Request WithCoarseMemory(Request request) {
  if (request.memory_mib == 0) return request;
  const auto up = absl::bit_ceil(static_cast<uint64_t>(request.memory_mib));
  request.memory_mib = std::min(static_cast<int64_t>(up), kMaxRoomMemoryMib);
  return request;
}

// Most frequent first.
bool Before(const RequestType& a, const RequestType& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.request < b.request;
}

Request Coarser(Request request) {
  const auto up = [](auto amount, auto unit) { return (amount + unit - 1) / unit * unit; };
  request.cpu_millis = up(request.cpu_millis, kCoarseCpuMillis);
  request.share = up(request.share, kCoarseShare);
  if (request.share == kWholeDevice) {
    request.devices = 1;
    request.share = 0;
  }
  return request;
}

}  // namespace

void MixLearner::Observe(const Request& request) {
  ++counts_[request];
  ++arrivals_;
  if (++counted_ < kMixMemory) return;
  counted_ = 0;
  for (auto it = counts_.begin(); it != counts_.end();) {
    it->second /= 2;
    counted_ += it->second;
    it = it->second == 0 ? counts_.erase(it) : std::next(it);
  }
}

RequestMix MixLearner::Give(std::vector<std::string> models) {
  while (Due()) next_ += std::min(next_, kMixEvery);
  std::vector<RequestType> types;
  for (const auto& [request, count] : counts_) types.push_back({request, count});
  if (types.size() > kMaxMixTypes) {
    for (RequestType& type : types) type.request = WithCoarseMemory(type.request);
    types = MixOf({}, std::move(types)).types;
  }
  if (types.size() > kMaxMixTypes) {
    std::sort(types.begin(), types.end(), Before);
    for (size_t i = kExactTypes; i < types.size(); ++i)
      types[i].request = Coarser(types[i].request);
    types = MixOf({}, std::move(types)).types;
    std::sort(types.begin(), types.end(), Before);
    types.resize(std::min(types.size(), kMaxMixTypes));
  }
  return MixOf(std::move(models), std::move(types));
}

}  // namespace berth
