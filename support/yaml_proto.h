// Strict YAML (or JSON, which is YAML) into a protobuf message, by reflection. Manifests, configuration and scenario
// files are all messages, and all read here.
//
// Keys are json names (lowerCamelCase) or field names. Refused with "FILE:LINE:COLUMN: ...": unknown keys (naming the
// nearest known one), repeated keys, wrong types, numbers out of range, unknown enum values (listing the known ones),
// anchors and aliases, more than one level of nothing. Scalars follow the field's (berth.v1.quantity) option: "500m",
// "1Ti"; Duration fields take "72h", "1h30m", "500ms"; Timestamp fields RFC 3339. Enum values are case-insensitive,
// without prefix, "RestartPartition" as well as "RESTART_PARTITION". Sugar: a scalar where a list is expected is a
// list of one; DeviceRequest from a number is its count; ResourceRequest and ResourceList take device kinds as keys
// ("gpu: 8"); environment lists may be maps.
#ifndef BERTH_SUPPORT_YAML_PROTO_H_
#define BERTH_SUPPORT_YAML_PROTO_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace google::protobuf {
class Message;
}

namespace berth {

inline constexpr size_t kMaxYamlBytes = size_t{16} << 20;
inline constexpr int kMaxYamlDepth = 32;

// Reads the single document in `text`. `file` names it in messages. All errors found (at most 20) are in the
// INVALID_ARGUMENT message, one a line.
absl::Status ReadYaml(absl::string_view text, absl::string_view file, google::protobuf::Message* message);

// Reads a file of one document. NOT_FOUND or the reader's errors.
absl::Status ReadYamlFile(const std::string& path, google::protobuf::Message* message);

// The message as YAML that ReadYaml reads back to an equal message: quantities and durations as people write them,
// unset fields left out.
std::string WriteYaml(const google::protobuf::Message& message);

// "1.5" -> 1500, "500m" -> 500. Negative and too precise values are errors.
absl::StatusOr<int64_t> ParseCpuMillis(absl::string_view text);
// "64", "1Ki", "1.5Gi", "80GB", "80GiB".
absl::StatusOr<int64_t> ParseBytes(absl::string_view text);
std::string FormatCpuMillis(int64_t millis);
std::string FormatBytes(int64_t bytes);

}  // namespace berth

#endif  // BERTH_SUPPORT_YAML_PROTO_H_
