#include "clients/cli/output.h"

#include "support/proto_json.h"

namespace berth {

std::string JsonOf(const google::protobuf::Message& message) {
  return WriteJson(message, {.indented = true});
}

}  // namespace berth
