#include "core/sharing/fragmentation.h"

#include <algorithm>
#include <array>

namespace berth {
namespace {

// ln(s / (100 - s)) in millionths, for s from 51 to 99: from this value on the gain is s. A table,
// as the logarithm may differ between machines.
constexpr std::array<int64_t, 49> kGainFrom = {
    40'006,    80'043,    120'145,   160'343,   200'671,   241'163,   281'852,
    322'774,   363'966,   405'466,   447'313,   489'549,   532'217,   575'365,
    619'040,   663'295,   708'186,   753'772,   800'120,   847'298,   895'385,
    944'462,   994'623,   1'045'969, 1'098'613, 1'152'680, 1'208'312, 1'265'667,
    1'324'926, 1'386'295, 1'450'011, 1'516'348, 1'585'628, 1'658'229, 1'734'602,
    1'815'290, 1'900'959, 1'992'431, 2'090'742, 2'197'225, 2'313'635, 2'442'348,
    2'586'690, 2'751'536, 2'944'439, 3'178'054, 3'476'099, 3'891'821, 4'595'120};

}  // namespace

Fragmentation::Fragmentation(const RequestMix& mix) : weight_(mix.TotalWeight()) {
  for (const RequestType& type : mix.types) {
    if (type.request.amount() > 0) types_.push_back(type);
  }
}

int64_t Fragmentation::Of(const NodeRoom& room) const {
  if (weight_ == 0) return 0;
  const int64_t whole = room.whole * kWholeDevice;
  int64_t usable = 0;  // times weight
  for (const auto& [request, weight, value] : types_) {
    if (!Fits(request, room)) continue;
    int64_t amount = whole;
    if (request.share > 0) {
      for (auto it = room.parts.rbegin(); it != room.parts.rend() && *it >= request.share; ++it) {
        amount += *it;
      }
    }
    usable += weight * amount;
  }
  return (weight_ * room.amount() - usable) * kMicrosPerThousandth / weight_;
}

int64_t Stranding(const NodeRoom& room, int64_t cpu_millis_per_device) {
  if (cpu_millis_per_device == 0) return 0;
  const int64_t cpu = room.cpu_millis * kWholeDevice;
  const int64_t matched = room.amount() * cpu_millis_per_device;
  return std::abs(cpu - matched) * kMicrosPerThousandth / cpu_millis_per_device;
}

int64_t FragmentationGain(int64_t before, int64_t after) {
  // By symmetry, a rise loses from 49 downward what a fall gains from 50 upward.
  const auto passed =
      std::upper_bound(kGainFrom.begin(), kGainFrom.end(), std::abs(before - after));
  return before >= after ? 50 + (passed - kGainFrom.begin()) : 49 - (passed - kGainFrom.begin());
}

}  // namespace berth
