// The family of mixes: the openb lists with more or less CPU and memory asked for beside a GPU, and
// with more of some kinds of requests, so that now CPU, now memory, now the GPUs run out first.
//
//   "default cpu=2 multi=3"   the list "default"; every request asks for twice the CPU; requests
//   for
//                             several GPUs come three times as often
#ifndef BERTH_TESTS_OPENB_MIXES_H_
#define BERTH_TESTS_OPENB_MIXES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/openb/trace.h"

namespace berth::openb {

struct Mix {
  std::string list;  // of kLists
  double cpu = 1;    // factors of what each request asks for
  double memory = 1;
  double fraction = 1;  // factors of how many there are: requests for a share of a GPU
  double several = 1;   // for more than one
  double model = 1;     // for certain models
  double cpu_only = 1;  // for none
};

// INVALID_ARGUMENT naming the word that is none.
absl::StatusOr<Mix> ParseMix(const std::string& text);

// The mixes of the table in docs/benchmarks.md, as texts.
std::vector<std::string> Family();

// The list, changed so. No request asks for more than some node has that could hold it otherwise.
// Of a factor that is not whole, each whole part counts and the rest falls on requests evenly
// spread, in order of their names.
Trace Changed(Trace trace, const Mix& mix);

}  // namespace berth::openb

#endif  // BERTH_TESTS_OPENB_MIXES_H_
