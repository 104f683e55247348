// Resources times seconds, as sums over a long time: too large for integers.
#ifndef BERTH_OFFLINE_REPLAY_AMOUNTS_H_
#define BERTH_OFFLINE_REPLAY_AMOUNTS_H_

#include <array>
#include <cstddef>

#include "core/model/resources.h"

namespace berth::replay {

// By ResourceKind, in the model's units (thousandths of devices).
struct Amounts {
  std::array<double, kMaxResourceKinds> amount{};

  void Add(const Resources& resources, double seconds) {
    for (size_t i = 0; i < kMaxResourceKinds; ++i) {
      amount[i] += static_cast<double>(resources.amount[i]) * seconds;
    }
  }
  void Add(const Amounts& more) {
    for (size_t i = 0; i < kMaxResourceKinds; ++i) amount[i] += more.amount[i];
  }
};

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_AMOUNTS_H_
