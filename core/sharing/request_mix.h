// RequestMix: the known demand for devices. It lists which requests arrive, how often, and the
// value of placing one.
//
// A mix is a recorded input of planning. So it is exact (integers), small (at most kMaxMixTypes
// types) and canonical (types sorted and unique). core/sharing/mix_learner.h learns it from
// arrivals; pricing/prices.h computes the values.
#ifndef BERTH_CORE_SHARING_REQUEST_MIX_H_
#define BERTH_CORE_SHARING_REQUEST_MIX_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/base/fields.h"

namespace berth {

inline constexpr int64_t kWholeDevice = 1000;  // devices are counted in thousandths
inline constexpr int32_t kMaxRoomDevices = 128;
inline constexpr size_t kMaxMixTypes = 512;
inline constexpr size_t kMaxMixModels = 64;
inline constexpr int64_t kMaxMixWeight = 1'000'000'000;  // of all types together
inline constexpr int64_t kMaxRoomCpuMillis = 1'000'000'000;
inline constexpr int64_t kMaxRoomMemoryMib = 1'000'000'000;

// What one task requests on one node, as far as sharing is concerned: whole devices, or a share of
// one, or neither (CPU only).
struct Request {
  int32_t devices = 0;  // whole ones
  int32_t share = 0;    // thousandths of one device, below kWholeDevice; `devices` is then 0
  int64_t cpu_millis = 0;
  uint64_t models = 0;     // bit i: RequestMix::models[i] suits; 0: any device suits
  int64_t memory_mib = 0;  // 0 in a mix: cpu_millis includes everything besides devices

  // In thousandths of a device.
  int64_t amount() const { return devices * kWholeDevice + share; }
  bool AllowsModel(int32_t model) const {
    return models == 0 || (model >= 0 && (models >> model & 1) != 0);
  }
  auto operator<=>(const Request&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Request& v) {
    return HashFields(std::move(h), v);
  }
};

struct RequestType {
  Request request;
  int64_t weight = 0;  // among all arrivals; 1 or more
  int64_t value = 0;   // see RequestMix::priced; 0 or more
  bool operator==(const RequestType&) const = default;
};

// How bid_price scores with a priced mix (core/sharing/placement_scorer.h).
enum class MixScore : uint8_t {
  kPrices,                  // prices, and a tenth of fragmentation
  kPricesAndFragmentation,  // three tenths of it
  kFragmentation,           // as the policy of that name
  kFgd,                     // likewise
};
inline constexpr size_t kMixScores = 4;

struct RequestMix {
  std::vector<std::string> models;  // names of device models, by index; unique
  std::vector<RequestType> types;   // ascending by request; unique
  // The average CPU per device over all arrivals, including those without devices. 0: unknown.
  int64_t cpu_millis_per_device = 0;
  // The values are known: `value` is what a request of the type earns with the room that it takes,
  // in thousandths of a device. That is its own size, minus the value of having one more such
  // request to place (0 for a type with plenty of demand; nearly all for one that fills gaps).
  bool priced = false;
  // The meaning of cpu_millis here and in types (core/sharing/host_resource.h). 0: CPU; else
  // memory, of which this many MiB count as one CPU.
  int64_t mib_per_core = 0;
  // The score with which bid_price fills the cluster best, among those tried (pricing/rehearsal.h).
  MixScore score = MixScore::kPrices;

  int64_t TotalWeight() const;
  // The type with this request; null if there is none.
  const RequestType* Find(const Request& request) const;
  bool operator==(const RequestMix&) const = default;
};

// INVALID_ARGUMENT naming the first rule that the mix violates.
absl::Status CheckMix(const RequestMix& mix);

// The mix of these arrivals, in any order, without values: weights of equal requests are added, and
// the CPU per device is that of the sum. Weights 1 or more.
RequestMix MixOf(std::vector<std::string> models, std::vector<RequestType> arrivals);

}  // namespace berth

#endif  // BERTH_CORE_SHARING_REQUEST_MIX_H_
