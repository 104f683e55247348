#include "support/yaml_proto_sugar.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "berth/v1/types.pb.h"
#include "support/nearest.h"

namespace berth {

bool TakesDeviceKinds(const google::protobuf::Descriptor* type) {
  return type == v1::ResourceRequest::descriptor() || type == v1::ResourceList::descriptor();
}

const std::vector<std::string>& WellKnownDeviceKinds() {
  static const auto& kinds =
      *new std::vector<std::string>{"gpu", "npu", "nic", "tpu", "dpu", "xpu", "dcu", "mlu", "fpga"};
  return kinds;
}

bool IsWellKnownDeviceKind(absl::string_view key) {
  const std::vector<std::string>& kinds = WellKnownDeviceKinds();
  return std::find(kinds.begin(), kinds.end(), key) != kinds.end();
}

bool MayBeDeviceKind(absl::string_view key, const std::vector<std::string>& keys) {
  if (IsWellKnownDeviceKind(key)) return true;
  if (key.empty() || !absl::ascii_islower(static_cast<unsigned char>(key[0]))) return false;
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    if (!absl::ascii_islower(byte) && !absl::ascii_isdigit(byte) && c != '-' && c != '_')
      return false;
  }
  return NearestWord(key, keys).empty() && NearestWord(key, WellKnownDeviceKinds()).empty();
}

}  // namespace berth
