// How NVIDIA's GPUs can be divided (MIG): profiles, and where their instances can be placed.
//
// A GPU has 8 slices of memory and 7 of compute. An instance takes adjacent slices of memory,
// beginning at one of its profile's starts, and some of compute:
//
//   slice      0   1   2   3   4   5   6   7
//   7x 1g    | 1g| 1g| 1g| 1g| 1g| 1g| 1g|   |
//   4g+2g+1g |       4g      |   2g  | 1g|   |
//   3g+3g    |       3g      |       3g      |   one slice of compute is left over
//
// Sources, for A100 and H100: NVIDIA's MIG User Guide, "Supported MIG Profiles" (fractions of
// memory and SMs, numbers of instances), and the output of `nvidia-smi mig -lgipp` (starts), which
// the guide prints for A100. For H200 and B200 the guide has the same fractions and numbers, which
// imply the same starts; we have no output to confirm them. GPUs without even that (GH200, H20,
// GB200, B300, RTX PRO, A30) are not included. If a driver disagrees, it refuses a division.
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
  std::string name;  // such as "2g.20gb"
  int compute_slices = 0;
  int memory_slices = 0;
  uint8_t starts = 0;  // bit n: may start at memory slice n
  int most = 0;        // maximum number of instances on one GPU
};

struct MigGeometry {
  std::vector<MigProfile> profiles;  // smallest first; the first also fills the rest of a GPU
  const MigProfile* Find(absl::string_view name) const;
};

// One instance.
struct MigPart {
  std::string profile;
  int start = 0;  // memory slice
  bool operator==(const MigPart&) const = default;
  friend auto operator<=>(const MigPart&, const MigPart&) = default;
};

// By NVML's name ("NVIDIA A100-SXM4-80GB") and total memory, as variants with one name have other
// profiles; null: unknown. Lives as long as the process.
const MigGeometry* MigGeometryOf(absl::string_view model, int64_t memory_bytes);

// Every instance that can be added to these, which must be valid together: profiles in their order,
// each by start.
std::vector<MigPart> MigPartsBeside(const MigGeometry& geometry, absl::Span<const MigPart> there);

// The requested number of instances of a profile.
struct MigDemand {
  std::string profile;
  int count = 0;
};

// The instances of an empty GPU, by start, that serve most of the demand: between two layouts, the
// one with more of the first demand wins, then of the second, and so on. The rest is divided into
// as many instances of the smallest profile as fit. Profiles that the GPU does not have are
// skipped; if none remains, all of it is divided that way.
std::vector<MigPart> BestMigLayout(const MigGeometry& geometry, absl::Span<const MigDemand> demand);

}  // namespace berth

#endif  // BERTH_CORE_DEVICES_MIG_GEOMETRY_H_
