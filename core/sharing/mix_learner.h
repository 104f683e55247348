// MixLearner: the request mix of the arrivals so far, and when to publish it.
//
// Every published mix is recorded and requires new values and scores. So it is published often at
// first, and rarely later: after 5, 10, 20, ... 2560 arrivals, 5120, and then every 3200. Old
// arrivals fade: whenever kMixMemory are counted, all counts are halved.
#ifndef BERTH_CORE_SHARING_MIX_LEARNER_H_
#define BERTH_CORE_SHARING_MIX_LEARNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "core/sharing/request_mix.h"

namespace berth {

inline constexpr int64_t kMixMemory = 32'768;
inline constexpr int64_t kFirstMix = 5;
inline constexpr int64_t kMixEvery = 3200;

class MixLearner {
 public:
  void Observe(const Request& request);
  // A new mix is due.
  bool Due() const { return arrivals_ >= next_; }
  // The mix of the counted arrivals: at most kMaxMixTypes types, without values. Schedules the next
  // one.
  //
  // If there are more types, memory is rounded up to a power of two. If there still are, the most
  // frequent three quarters of the limit stay unchanged. The rest become coarser: CPU is rounded up
  // to 8 CPUs, shares to a tenth of a device. If there are still too many, the rarest are dropped.
  RequestMix Give(std::vector<std::string> models);

 private:
  absl::btree_map<Request, int64_t> counts_;
  int64_t counted_ = 0;   // sum of counts_
  int64_t arrivals_ = 0;  // in total
  int64_t next_ = kFirstMix;
};

}  // namespace berth

#endif  // BERTH_CORE_SHARING_MIX_LEARNER_H_
