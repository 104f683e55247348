// Maps of user and group numbers in which two change places and all others keep theirs.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_ID_SWAP_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_ID_SWAP_H_

#include <cstdint>
#include <vector>

namespace berth {

struct IdRange {
  uint32_t inside = 0, outside = 0, count = 0;
  bool operator==(const IdRange&) const = default;
};
// {0, 1000, 1}, {1, 1, 999}, {1000, 0, 1}, {1001, 1001, ...} for 0 and 1000. All numbers but the
// last, which means none.
std::vector<IdRange> SwapIds(uint32_t one, uint32_t other);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_ID_SWAP_H_
