// Strict YAML (or JSON, which is YAML) into a protobuf message, by reflection. Reads all manifests,
// configuration and scenario files, which are messages.
//
// Keys are json names (lowerCamelCase) or field names. Rejected with "FILE:LINE:COLUMN: ...":
// unknown keys (suggesting the nearest known one), repeated keys, two fields of a oneof, wrong
// types, numbers out of range, unknown enum values (listing the known ones), anchors, aliases and
// tags, keys without a value (except that an empty message, list or map counts as unset). Scalars
// follow the field's (berth.v1.quantity) option: "500m", "1Ti"; Duration fields take "72h",
// "1h30m", "500ms"; Timestamp fields RFC 3339; bytes fields base64. Enum values are
// case-insensitive, with or without prefix, "RestartPartition" or "RESTART_PARTITION".
//
// Sugar: a scalar in place of a list is a list of one; a number in place of a DeviceRequest is its
// count; ResourceRequest and ResourceList take device kinds as keys ("gpu: 8"); lists of {name,
// value} messages (environments) may be maps; TopologyConstraint.highestTier also takes the name of
// a tier.
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

// Reads the single document in `text`; no document leaves the message unchanged. Messages name
// `file`. The INVALID_ARGUMENT message lists all errors (at most kMaxYamlErrors), one a line; the
// message is then partially filled.
absl::Status ReadYaml(absl::string_view text, absl::string_view file,
                      google::protobuf::Message* message);

// Reads a file with one document. NOT_FOUND or the errors of ReadYaml.
absl::Status ReadYamlFile(const std::string& path, google::protobuf::Message* message);

// The positions of the fields that were read, by path in field names: "groups[1].min_available",
// "labels[\"team\"]". The server's field violations use the same paths.
using YamlPositions = std::map<std::string, YamlPosition>;

struct YamlReadOptions {
  // Keys that the caller handles itself, for "did you mean" at the top level.
  std::vector<std::string> also_known;
  YamlPositions* positions = nullptr;        // filled if given
  std::string refusal = "unknown key";       // how the error for an unknown key begins
  std::map<std::string, std::string> hints;  // printed for these keys instead of the known keys
  // What to write instead of a key that is not a field of `type`; "" if there is no suggestion.
  std::function<std::string(const google::protobuf::Descriptor& type, const YamlNode& key,
                            const YamlNode& value)>
      key_hint;
  std::set<std::string> ignored;  // unknown keys that are skipped instead of rejected
  YamlErrors* skipped = nullptr;  // receives "KEY is ignored" for each, if given
};
// Reads one document of a tree.
void ReadYamlNode(const YamlNode& node, google::protobuf::Message* message, YamlErrors* errors,
                  const YamlReadOptions& options = {});

struct YamlStyle {
  bool numbers = false;  // also numbers that are meaningful at 0 (support/shown_fields.h)
};
// The message as YAML from which ReadYaml reads an equal message: quantities and durations in human
// notation, unset fields omitted, maps sorted by key. Ends with a newline. An empty message is
// "{}".
std::string WriteYaml(const google::protobuf::Message& message, YamlStyle style = {});

}  // namespace berth

#endif  // BERTH_SUPPORT_YAML_PROTO_H_
