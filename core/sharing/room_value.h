// The value of a node's room: the greatest total value of requests that still fit.
//
// Dynamic programming over devices and CPU. For one device with r thousandths left, the best value
// by CPU is the best of: leave some unused; or place one share, plus the best of the rest. For k
// whole devices: the k-th as a single device plus the best of k-1; or place a request for n of
// them, plus the best of k-n. A node's value combines its whole devices and its parts.
//
//   worth: share 500 with 4 CPUs 300; one whole device with 8 CPUs 700
//   one device and 400 left of another, 8 CPUs: 700; with 6 CPUs: 300
//
// CPU is counted in steps of 250 thousandths: requests rounded up, nodes down. Memory is ignored.
// Models that suit the same types share one table. Results per room are cached, up to a limit.
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
inline constexpr int32_t kMaxCpuSteps = 2048;  // 512 CPUs; larger nodes count as 512

// Something that can be placed. Values may have any unit.
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
  // The requests that give the value: indexes into `requests`, with repetitions, ascending.
  std::vector<size_t> Best(const NodeRoom& room);

 private:
  class Table;
  Table& TableFor(int32_t model);

  std::vector<ValuedRequest> requests_;
  std::vector<std::pair<std::vector<size_t>, std::unique_ptr<Table>>> tables_;  // by what suits
  std::array<Table*, kMaxMixModels + 1> by_model_ = {};                         // from model -1 on
};

}  // namespace berth

#endif  // BERTH_CORE_SHARING_ROOM_VALUE_H_
