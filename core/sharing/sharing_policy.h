// The sharing policies, by name; core/sharing/placement_scorer.h describes each.
#ifndef BERTH_CORE_SHARING_SHARING_POLICY_H_
#define BERTH_CORE_SHARING_SHARING_POLICY_H_

#include <cstdint>

namespace berth {

enum class SharingPolicy : uint8_t { kSpread, kBinpack, kFragmentation, kFgd, kBidPrice };

}  // namespace berth

#endif  // BERTH_CORE_SHARING_SHARING_POLICY_H_
