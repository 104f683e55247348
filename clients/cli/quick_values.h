// Values of quick-form options that need more than one field.
#ifndef BERTH_CLIENTS_CLI_QUICK_VALUES_H_
#define BERTH_CLIENTS_CLI_QUICK_VALUES_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/v1/types.pb.h"
#include "berth/v1/volume.pb.h"

namespace berth {

// "rack" or "2" (waits until one has room), also as "hard:rack"; "soft:rack" (prefers one).
absl::StatusOr<v1::TopologyConstraint> ParseTopology(absl::string_view text);

// "HOST:PATH", "HOST:PATH:ro", "HOST:PATH:rw", as docker's -v; "/data" alone is "/data:/data".
absl::StatusOr<v1::Volume> ParseVolume(absl::string_view text);

// "PATH" or "PATH:SIZE", as "/tmp:16Gi"; also docker's "/tmp:size=16g".
absl::StatusOr<v1::Volume> ParseTmpfs(absl::string_view text);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_QUICK_VALUES_H_
