// Amounts times time, from the core's exact sums to the units of the API.
#ifndef BERTH_SERVER_HISTORY_RESOURCE_TIME_H_
#define BERTH_SERVER_HISTORY_RESOURCE_TIME_H_

#include "absl/strings/string_view.h"
#include "berth/v1/history.pb.h"
#include "core/history/meter.h"
#include "core/history/usage_facts.h"

namespace berth {

// What is less than a unit is dropped. 0 leaves nothing.
void SetResourceTime(absl::string_view resource, AmountTime sum, v1::ResourceTime* out);

// Of the meters, whose sums are complete, one figure.
template <class M>
void SetResourceTimes(const std::vector<NamedMeter<M>>& meters, size_t figure,
                      v1::ResourceTime* out) {
  for (const NamedMeter<M>& named : meters) {
    SetResourceTime(named.resource, named.meter.sum[figure], out);
  }
}

}  // namespace berth

#endif  // BERTH_SERVER_HISTORY_RESOURCE_TIME_H_
