// The interface of every target: a function of bytes that returns, or aborts the process if
// something is wrong.
#ifndef BERTH_TESTS_FUZZ_TARGET_H_
#define BERTH_TESTS_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace berth::fuzz {

// Each target defines it.
void FuzzOne(absl::string_view input);

}  // namespace berth::fuzz

#endif  // BERTH_TESTS_FUZZ_TARGET_H_
