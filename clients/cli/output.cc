#include "clients/cli/output.h"

#include "support/proto_json.h"
#include "support/yaml_proto.h"

namespace berth {

std::string JsonOf(const google::protobuf::Message& message) {
  return WriteJson(message, {.indented = true});
}

std::string YamlOf(const google::protobuf::Message& message) {
  return WriteYaml(message, {.numbers = true});
}

}  // namespace berth
