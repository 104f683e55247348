#include "core/sharing/fragmentation.h"

#include <algorithm>
#include <array>

namespace berth {
namespace {

constexpr int64_t kMicrosPerThousandth = 1000;

// ln(s / (100 - s)) in millionths, for s from 51 to 99: from there on the gain is s. A table, as
// the logarithm may differ between machines.
constexpr std::array<int64_t, 49> kGainFrom = {
    40'005,    80'043,    120'144,   160'343,   200'671,   241'162,   281'851,
    322'773,   363'965,   405'465,   447'312,   489'548,   532'217,   575'364,
    619'039,   663'294,   708'185,   753'772,   800'119,   847'298,   895'384,
    944'462,   994'623,   1'045'969, 1'098'612, 1'152'680, 1'208'311, 1'265'666,
    1'324'925, 1'386'294, 1'450'010, 1'516'347, 1'585'627, 1'658'228, 1'734'601,
    1'815'290, 1'900'959, 1'992'430, 2'090'741, 2'197'225, 2'313'635, 2'442'347,
    2'586'689, 2'751'535, 2'944'439, 3'178'054, 3'476'099, 3'891'820, 4'595'120,
};

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
  const int64_t fall = before - after;
  if (fall >= 0) {
    return 50 + (std::upper_bound(kGainFrom.begin(), kGainFrom.end(), fall) - kGainFrom.begin());
  }
  // Symmetric: below 50 the gain is s from -ln((100 - s) / s) on.
  return 50 - (std::lower_bound(kGainFrom.begin(), kGainFrom.end(), -fall) - kGainFrom.begin()) - 1;
}

}  // namespace berth
