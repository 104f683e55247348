// Converts one scalar between YAML text and a field of a message. Part of yaml_proto.
#ifndef BERTH_SUPPORT_YAML_PROTO_SCALAR_H_
#define BERTH_SUPPORT_YAML_PROTO_SCALAR_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "support/yaml_tree.h"

namespace berth {

// True for Duration and Timestamp, messages that are written as one scalar.
bool IsScalarMessage(const google::protobuf::Descriptor* type);

// Sets the field, or appends to it if it is repeated. Errors name what was expected and what was
// found.
absl::Status SetScalar(const YamlNode& node, const google::protobuf::FieldDescriptor* field,
                       google::protobuf::Message* message);
// The same for a whole Duration or Timestamp.
absl::Status SetScalarMessage(const YamlNode& node, google::protobuf::Message* message);

// The field's value, or its element `index` (-1 = not repeated), as a YAML scalar, quoted if
// necessary.
std::string ScalarText(const google::protobuf::Message& message,
                       const google::protobuf::FieldDescriptor* field, int index);
std::string ScalarMessageText(const google::protobuf::Message& message);

// `text` as a YAML scalar that reads back as the same text: plain if that is safe, else in double
// quotes.
std::string QuoteYaml(absl::string_view text);

// Human spelling of an enum value: "RESTART_JOB" -> "RestartJob", "JOB_PENDING" -> "Pending".
std::string EnumText(const google::protobuf::EnumValueDescriptor* value);
// By any of its spellings; null if unknown. The zero value only by its full name.
const google::protobuf::EnumValueDescriptor* FindEnumValue(
    const google::protobuf::EnumDescriptor* type, absl::string_view text);
std::vector<std::string> EnumTexts(const google::protobuf::EnumDescriptor* type);

}  // namespace berth

#endif  // BERTH_SUPPORT_YAML_PROTO_SCALAR_H_
