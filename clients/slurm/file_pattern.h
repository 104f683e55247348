// File names of --output, --error and --input.
#ifndef BERTH_CLIENTS_SLURM_FILE_PATTERN_H_
#define BERTH_CLIENTS_SLURM_FILE_PATTERN_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace berth {

// What the letters of a pattern mean for one file.
struct PatternValues {
  std::string job;          // %j; also %J, with the step
  std::string array_job;    // %A; the job itself if it is of no array
  std::string array_index;  // %a; "4294967294" if it is of no array, as in Slurm
  std::string name;         // %x
  std::string user;         // %u
  std::string host;         // %N, short
  std::string step;         // %s
  int node = 0;             // %n, in the step
  int task = 0;             // %t
};

// Letters may have a width, "%4t", up to 10, which pads numbers with zeros. "%%" is "%". A pattern
// with a backslash is taken as it is, without the backslashes.
std::string ExpandPattern(absl::string_view pattern, const PatternValues& values);
// All but %n, %t and %N, which only the node knows: a pattern again.
std::string ExpandForNodes(absl::string_view pattern, const PatternValues& values);
// INVALID_ARGUMENT for an unknown letter.
absl::Status CheckPattern(absl::string_view pattern);
// Each node or task has a file of its own.
bool IsPerTask(absl::string_view pattern);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_FILE_PATTERN_H_
