// Rules for an agent's registration.
#ifndef BERTH_SERVER_VALIDATION_HELLO_H_
#define BERTH_SERVER_VALIDATION_HELLO_H_

#include "absl/status/status.h"
#include "berth/v1/agent.pb.h"

namespace berth {

inline constexpr size_t kMaxAgentTextBytes = 128;  // ids, versions, models
inline constexpr size_t kMaxCpuListBytes = 1024;   // of one NUMA node
inline constexpr int32_t kMaxLinkCount = 1024;     // between two devices
inline constexpr int64_t kMaxLinkMbPerS = 100'000'000;
inline constexpr int kMaxTaints = 32;
inline constexpr int kMaxTasksInHello = 100'000;

// OK, or every violation with its path from the Hello. Taints that evict need kFormatOfProgress.
absl::Status ValidateHello(const v1::Hello& hello, uint32_t store_format);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_HELLO_H_
