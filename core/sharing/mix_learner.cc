#include "core/sharing/mix_learner.h"

#include <algorithm>
#include <utility>

namespace berth {
namespace {

constexpr size_t kExactTypes = kMaxMixTypes / 4 * 3;
constexpr int64_t kCoarseCpuMillis = 8000;
constexpr int32_t kCoarseShare = 100;

// Most frequent first.
bool Before(const RequestType& a, const RequestType& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.request < b.request;
}

Request Coarser(Request request) {
  const auto up = [](auto amount, auto unit) { return (amount + unit - 1) / unit * unit; };
  request.cpu_millis = up(request.cpu_millis, kCoarseCpuMillis);
  request.share = up(request.share, kCoarseShare);
  if (request.share == kWholeDevice) request = {1, 0, request.cpu_millis, request.models};
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
