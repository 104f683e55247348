// What every target has: a function of bytes that returns, and ends the process when something is
// wrong.
#ifndef BERTH_TESTS_FUZZ_TARGET_H_
#define BERTH_TESTS_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace berth::fuzz {

// Each target's own.
void FuzzOne(absl::string_view input);

}  // namespace berth::fuzz

#endif  // BERTH_TESTS_FUZZ_TARGET_H_
