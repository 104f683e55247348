// What the requests that still fit on a node are worth: the greatest sum of their values.
//
// Dynamic programming over devices and CPU. Of one device with r thousandths left, the best value
// by CPU is the best of: leave some unused; or place one share, and have the best of what is left.
// Of k whole devices: the k-th as such a device and the best of k-1; or place a request for n of
// them, and have the best of k-n. A node is its whole devices and its parts together.
//
//   worth: share 500 with 4 CPUs 300; one whole device with 8 CPUs 700
//   one device and 400 left of another, 8 CPUs: 700; with 6 CPUs: 300
//
// CPU is counted in steps of 250 thousandths: requests rounded up, nodes down. Memory is left out.
// Devices of models that suit the same types share one table; what depends on the room is kept, up
// to a bound.
#ifndef BERTH_CORE_SHARING_ROOM_VALUE_H_
#define BERTH_CORE_SHARING_ROOM_VALUE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "core/sharing/node_room.h"
#include "core/sharing/step_list.h"

namespace berth {

inline constexpr int64_t kCpuStepMillis = 250;
inline constexpr int32_t kMaxCpuSteps = 2048;  // 512 CPUs; of nodes with more, these count

// Something that can be placed. Values may be in any unit.
struct ValuedRequest {
  Request request;
  int64_t value = 0;  // 0 or less: never placed
};

class RoomValue {
 public:
  explicit RoomValue(std::vector<ValuedRequest> requests);
  RoomValue(RoomValue&&) noexcept;
  RoomValue& operator=(RoomValue&&) noexcept;
  ~RoomValue();

  int64_t Of(const NodeRoom& room);
  // What is placed to have it: indexes of `requests`, with repetitions, ascending.
  std::vector<size_t> Best(const NodeRoom& room);

 private:
  class Table;
  Table& TableFor(int32_t model);

  std::vector<ValuedRequest> requests_;
  std::vector<std::pair<std::vector<size_t>, std::unique_ptr<Table>>> tables_;  // by what suits
  std::array<Table*, kMaxMixModels + 1> by_model_ = {};                         // from -1 on
};

}  // namespace berth

#endif  // BERTH_CORE_SHARING_ROOM_VALUE_H_
