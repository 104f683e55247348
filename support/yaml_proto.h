// Strict YAML (or JSON, which is YAML) into a protobuf message, by reflection. Manifests,
// configuration and scenario files are all messages, and all read here.
//
// Keys are json names (lowerCamelCase) or field names. Refused with "FILE:LINE:COLUMN: ...":
// unknown keys (naming the nearest known one), repeated keys, two fields of a oneof, wrong types,
// numbers out of range, unknown enum values (listing the known ones), anchors, aliases and tags,
// keys without a value (except that an empty message, list or map counts as left out). Scalars
// follow the field's (berth.v1.quantity) option: "500m", "1Ti"; Duration fields take "72h",
// "1h30m", "500ms"; Timestamp fields RFC 3339; bytes fields base64. Enum values are
// case-insensitive, with or without prefix, "RestartPartition" as well as "RESTART_PARTITION".
//
// Sugar: a scalar where a list is expected is a list of one; DeviceRequest from a number is its
// count; ResourceRequest and ResourceList take device kinds as keys ("gpu: 8"); lists of {name,
// value} messages (environments) may be maps; TopologyConstraint.highestTier takes a tier's name
// too.
#ifndef BERTH_SUPPORT_YAML_PROTO_H_
#define BERTH_SUPPORT_YAML_PROTO_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "support/quantity.h"
#include "support/yaml_tree.h"

namespace google::protobuf {
class Descriptor;
class Message;
}  // namespace google::protobuf

namespace berth {

// Reads the single document in `text`; no document leaves the message as it is. `file` names it in
// messages. All errors found (at most kMaxYamlErrors) are in the INVALID_ARGUMENT message, one a
// line; the message is then half read.
absl::Status ReadYaml(absl::string_view text, absl::string_view file,
                      google::protobuf::Message* message);

// Reads a file of one document. NOT_FOUND or the reader's errors.
absl::Status ReadYamlFile(const std::string& path, google::protobuf::Message* message);

// The bytes of a file, or of standard input for "-". NOT_FOUND, PERMISSION_DENIED; INVALID_ARGUMENT
// above `max_bytes`.
absl::StatusOr<std::string> ReadTextFile(const std::string& path, size_t max_bytes = kMaxYamlBytes);

// Where the fields of a message that was read stand, by path in field names:
// "groups[1].min_available", "labels[\"team\"]". The server's field violations use the same paths.
using YamlPositions = std::map<std::string, YamlPosition>;

struct YamlReadOptions {
  // Keys that the caller takes out before, for "did you mean" at the top level.
  std::vector<std::string> also_known;
  YamlPositions* positions = nullptr;        // filled if given
  std::string refusal = "unknown key";       // how the refusal of a key begins
  std::map<std::string, std::string> hints;  // said instead of the known keys about these keys
  // What to write instead of a key that is no field of `type`; "" if nothing is known about it.
  std::function<std::string(const google::protobuf::Descriptor& type, const YamlNode& key,
                            const YamlNode& value)>
      key_hint;
  std::set<std::string> ignored;  // keys that are skipped where they would be refused
  YamlErrors* skipped = nullptr;  // told which, if given
};
// Reads one document of a tree.
void ReadYamlNode(const YamlNode& node, google::protobuf::Message* message, YamlErrors* errors,
                  const YamlReadOptions& options = {});

struct YamlStyle {
  bool numbers = false;  // also numbers that say something at 0 (support/shown_fields.h)
};
// The message as YAML that ReadYaml reads back to an equal message: quantities and durations as
// people write them, unset fields left out, map entries by key. Ends with a newline. An empty
// message is "{}".
std::string WriteYaml(const google::protobuf::Message& message, YamlStyle style = {});

}  // namespace berth

#endif  // BERTH_SUPPORT_YAML_PROTO_H_
