// An input that is a sequence of steps, so that state builds up.
//
//   @SubmitJobs
//   jobs { name: "j1" spec { queue: "main" ... } }
//   ---
//   @Agent 1
//   heartbeat { sequence: 1 }
#ifndef BERTH_TESTS_FUZZ_STEPS_H_
#define BERTH_TESTS_FUZZ_STEPS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace berth::fuzz {

inline constexpr size_t kMostSteps = 64;

struct Step {
  absl::string_view name;  // as written; may be unknown
  uint32_t slot = 0;       // the number after it, below kSlots: of an agent, job, ...
  absl::string_view body;  // message.h
};
inline constexpr uint32_t kSlots = 3;

std::vector<Step> ReadSteps(absl::string_view input);

// Maps an unknown name to one of `count` kinds, always to the same one.
size_t KindOf(absl::string_view name, size_t count);

}  // namespace berth::fuzz

#endif  // BERTH_TESTS_FUZZ_STEPS_H_
