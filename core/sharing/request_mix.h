// RequestMix: what is known of the demand for devices. Which requests come, how often, and what
// placing one is worth.
//
// A mix is an input of planning, and recorded as such: so it is exact (integers), small (at most
// kMaxMixTypes types) and canonical (types in order, each once). What learns it from arrivals is
// core/sharing/mix_learner.h; what finds the values is pricing/prices.h.
#ifndef BERTH_CORE_SHARING_REQUEST_MIX_H_
#define BERTH_CORE_SHARING_REQUEST_MIX_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace berth {

inline constexpr int64_t kWholeDevice = 1000;  // devices are counted in thousandths
inline constexpr int32_t kMaxRoomDevices = 128;
inline constexpr size_t kMaxMixTypes = 512;
inline constexpr size_t kMaxMixModels = 64;
inline constexpr int64_t kMaxMixWeight = 1'000'000'000;  // of all types together
inline constexpr int64_t kMaxRoomCpuMillis = 1'000'000'000;
inline constexpr int64_t kMaxRoomMemoryMib = 1'000'000'000;

// What one task asks of one node, as far as sharing is concerned: whole devices, or a share of one,
// or neither (CPU alone).
struct Request {
  int32_t devices = 0;  // whole ones
  int32_t share = 0;    // thousandths of one device, below kWholeDevice; `devices` is then 0
  int64_t cpu_millis = 0;
  uint64_t models = 0;     // bit i: RequestMix::models[i] will do; 0: any device will
  int64_t memory_mib = 0;  // 0 in a mix: what counts beside devices is all in cpu_millis

  // In thousandths of a device.
  int64_t amount() const { return devices * kWholeDevice + share; }
  bool AllowsModel(int32_t model) const {
    return models == 0 || (model >= 0 && (models >> model & 1) != 0);
  }
  auto operator<=>(const Request&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Request& v) {
    return H::combine(std::move(h), v.devices, v.share, v.cpu_millis, v.models, v.memory_mib);
  }
};

struct RequestType {
  Request request;
  int64_t weight = 0;  // how many of all arrivals; 1 or more
  int64_t value = 0;   // see RequestMix::priced; 0 or more
  bool operator==(const RequestType&) const = default;
};

// What bid_price goes by with a mix that is priced (core/sharing/placement_scorer.h).
enum class MixScore : uint8_t {
  kPrices,                  // prices, and a tenth of fragmentation
  kPricesAndFragmentation,  // three tenths of it
  kFragmentation,           // as the policy of that name
  kFgd,                     // likewise
};
inline constexpr size_t kMixScores = 4;

struct RequestMix {
  std::vector<std::string> models;  // names of device models, by their index here; each once
  std::vector<RequestType> types;   // ascending by request, each request once
  // What goes with one device on the average of all arrivals, those of CPU alone included. 0: not
  // known.
  int64_t cpu_millis_per_device = 0;
  // The values are known: `value` is then what one of the type earns with the room that it takes,
  // in thousandths of a device. That is its own size, less what it is worth to have one more of its
  // kind to place (0 for a kind that there is plenty of; nearly all for one that fills gaps).
  bool priced = false;
  // What cpu_millis are, here and in types (core/sharing/host_resource.h): 0: of CPU; else of
  // memory, of which so many MiB count as one CPU.
  int64_t mib_per_core = 0;
  // By which score bid_price fills the cluster best, as far as that was tried
  // (pricing/rehearsal.h).
  MixScore score = MixScore::kPrices;

  int64_t TotalWeight() const;
  // Of this request; null if it is none of the types.
  const RequestType* Find(const Request& request) const;
  bool operator==(const RequestMix&) const = default;
};

// INVALID_ARGUMENT naming the first thing that a mix may not have.
absl::Status CheckMix(const RequestMix& mix);

// The mix of these arrivals, in any order, without values: types of one request are added up, and
// the CPU per device is that of the sum. Weights 1 or more.
RequestMix MixOf(std::vector<std::string> models, std::vector<RequestType> arrivals);

}  // namespace berth

#endif  // BERTH_CORE_SHARING_REQUEST_MIX_H_
