#include "clients/cli/output.h"

#include "absl/strings/strip.h"
#include "google/protobuf/util/json_util.h"

namespace berth {

std::string JsonOf(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok()) return "{}";  // only an Any of unknown type fails, and no resource has one
  return std::string(absl::StripSuffix(text, "\n"));
}

}  // namespace berth
