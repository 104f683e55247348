// How NVIDIA's GPUs can be divided (MIG): profiles, and where instances of them may lie.
//
// A GPU has 8 slices of memory and 7 of compute. An instance takes neighbouring slices of memory,
// from one of its profile's starts on, and some of compute:
//
//   slice      0   1   2   3   4   5   6   7
//   7x 1g    | 1g| 1g| 1g| 1g| 1g| 1g| 1g|   |
//   4g+2g+1g |       4g      |   2g  | 1g|   |
//   3g+3g    |       3g      |       3g      |   one slice of compute is left over
//
// From NVIDIA's MIG User Guide, "Supported MIG Profiles" (fractions of memory and SMs, numbers of
// instances), and what `nvidia-smi mig -lgipp` prints (starts), on A100 and H100: the guide prints
// it for A100. For H200 and B200 the guide has the same fractions and numbers, from which follow
// the same starts; nobody has printed them for us. GPUs of which not even that is known (GH200,
// H20, GB200, B300, RTX PRO, A30) are not here. Where a driver knows better, it refuses a division.
#ifndef BERTH_CORE_DEVICES_MIG_GEOMETRY_H_
#define BERTH_CORE_DEVICES_MIG_GEOMETRY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace berth {

inline constexpr int kMigComputeSlices = 7;
inline constexpr int kMigMemorySlices = 8;

struct MigProfile {
  std::string name;  // "2g.20gb"
  int compute_slices = 0;
  int memory_slices = 0;
  uint8_t starts = 0;  // bit n: may begin at memory slice n
  int most = 0;        // instances of it on one GPU
};

struct MigGeometry {
  std::vector<MigProfile> profiles;  // smallest first; the first is what is left over divided into
  const MigProfile* Find(absl::string_view name) const;
};

// One instance.
struct MigPart {
  std::string profile;
  int start = 0;  // memory slice
  bool operator==(const MigPart&) const = default;
  friend auto operator<=>(const MigPart&, const MigPart&) = default;
};

// Of the GPU by NVML's name ("NVIDIA A100-SXM4-80GB") and all of its memory, as variants of one
// name have other profiles; null: not known. Lives as long as the process.
const MigGeometry* MigGeometryOf(absl::string_view model, int64_t memory_bytes);

// Every instance that can be made beside these, which must be valid together: profiles in their
// order, each by start.
std::vector<MigPart> MigPartsBeside(const MigGeometry& geometry, absl::Span<const MigPart> there);

// How many instances of a profile are wanted.
struct MigDemand {
  std::string profile;
  int count = 0;
};

// The instances of an empty GPU, by start, that serve most of what is wanted: of two layouts the
// one with more of the first demand, then of the second, and so on. What remains is divided into
// as many instances of the smallest profile as it holds. Profiles that the GPU does not have are
// passed over; without any that it has, all of it is divided so.
std::vector<MigPart> BestMigLayout(const MigGeometry& geometry, absl::Span<const MigDemand> demand);

}  // namespace berth

#endif  // BERTH_CORE_DEVICES_MIG_GEOMETRY_H_
