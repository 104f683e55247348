#include "core/model/node_faults.h"

#include <algorithm>

namespace berth {

int64_t FaultsAt(const NodeFaults& faults, Time now) {
  if (faults.thousandths == 0 || now <= faults.at) return faults.thousandths;
  Duration rest;
  const int64_t halvings = absl::IDivDuration(now - faults.at, kFaultHalfLife, &rest);
  if (halvings > 30) return 0;
  const int64_t whole = faults.thousandths >> halvings;
  return whole - whole * absl::ToInt64Seconds(rest) / absl::ToInt64Seconds(kFaultHalfLife) / 2;
}

NodeFaults WithFault(const NodeFaults& faults, Time now) {
  return {.thousandths = std::min(FaultsAt(faults, now) + 1000, kMaxNodeFaults), .at = now};
}

}  // namespace berth
