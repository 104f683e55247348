// Device kinds as keys next to "cpu" and "memory": "gpu: 8". Part of yaml_proto.
#ifndef BERTH_SUPPORT_YAML_PROTO_SUGAR_H_
#define BERTH_SUPPORT_YAML_PROTO_SUGAR_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace berth {

// True for ResourceRequest and ResourceList.
bool TakesDeviceKinds(const google::protobuf::Descriptor* type);

// The kinds that are accepted without further checks, and that are written as keys.
const std::vector<std::string>& WellKnownDeviceKinds();
bool IsWellKnownDeviceKind(absl::string_view key);

// A word that may name a device kind, and is not a typo of a well-known kind or of one of `keys`.
bool MayBeDeviceKind(absl::string_view key, const std::vector<std::string>& keys);

}  // namespace berth

#endif  // BERTH_SUPPORT_YAML_PROTO_SUGAR_H_
