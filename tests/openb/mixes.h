// The family of mixes: the openb lists with more or less CPU and memory requested with a GPU, and
// with more requests of some kinds, so that CPU, memory or the GPUs run out first.
//
//   "default cpu=2 several=3"   the list "default"; every request has twice the CPU; requests
//                               for several GPUs come three times as often
#ifndef BERTH_TESTS_OPENB_MIXES_H_
#define BERTH_TESTS_OPENB_MIXES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/openb/trace.h"

namespace berth::openb {

struct Mix {
  std::string list;  // of kLists
  double cpu = 1;    // factors of each request's amounts
  double memory = 1;
  double fraction = 1;  // factors of the number of requests: for a share of a GPU
  double several = 1;   // for more than one GPU
  double model = 1;     // for certain models
  double cpu_only = 1;  // for no GPU
};

// INVALID_ARGUMENT naming the invalid word.
absl::StatusOr<Mix> ParseMix(const std::string& text);

// The mixes of the table in docs/appendix/measurements.md, as texts.
std::vector<std::string> Family();

// The list with these factors. No request exceeds the CPU and memory of the nodes that have its
// devices. If a factor is not a whole number, each request is repeated by its whole part, and the
// rest is spread evenly over the requests, in order of their names.
Trace Changed(Trace trace, const Mix& mix);

}  // namespace berth::openb

#endif  // BERTH_TESTS_OPENB_MIXES_H_
