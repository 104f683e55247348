// The table behind RoomValue, for the requests that suit one device model.
#ifndef BERTH_CORE_SHARING_ROOM_VALUE_TABLE_H_
#define BERTH_CORE_SHARING_ROOM_VALUE_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "core/sharing/room_value.h"

namespace berth {

class RoomValue::Table {
 public:
  // `suits`: indexes of the suitable requests.
  Table(const std::vector<ValuedRequest>& requests, const std::vector<size_t>& suits);

  int64_t Of(const NodeRoom& room);
  std::vector<size_t> Best(const NodeRoom& room);

 private:
  struct Item {
    int32_t size = 0;  // thousandths, or whole devices
    int32_t cpu = 0;   // steps
    int64_t value = 0;
    size_t index = 0;
  };
  // The part of a room that affects the value.
  struct Key {
    int32_t cpu = 0;
    int32_t whole = 0;
    absl::InlinedVector<int16_t, 8> sums;  // of the parts: indexes into sums_, ascending, without 0
    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& v) {
      return H::combine(std::move(h), v.cpu, v.whole, v.sums);
    }
  };
  Key KeyOf(const NodeRoom& room) const;
  void FillDevice();
  void FillWhole(int32_t whole);
  int64_t Compute(const Key& key);
  void TraceDevice(size_t sum, ValueStep step, std::vector<size_t>* placed) const;
  void TraceWhole(size_t whole, ValueStep step, std::vector<size_t>* placed) const;

  std::vector<Item> shares_;
  std::vector<Item> wholes_;
  // Amounts to which shares can add up, ascending from 0; any other amount is worth as much as the
  // next lower one.
  std::vector<int32_t> sums_;
  std::array<int16_t, kWholeDevice + 1> sum_of_ = {};  // by amount: index of that next lower one
  std::vector<StepList> device_;                       // by index into sums_: for one device
  std::vector<StepList> whole_;                        // by number of whole devices
  StepListBuilder builder_;
  absl::flat_hash_map<Key, int64_t> known_;  // never iterated
};

}  // namespace berth

#endif  // BERTH_CORE_SHARING_ROOM_VALUE_TABLE_H_
