#include "support/proto_json.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/type_resolver_util.h"
#include "support/visible.h"

namespace berth {
namespace {

constexpr const char* kPrefix = "type.googleapis.com";

google::protobuf::util::TypeResolver* Resolver() {
  static auto* resolver = google::protobuf::util::NewTypeResolverForDescriptorPool(
      kPrefix, google::protobuf::DescriptorPool::generated_pool());
  return resolver;
}

// Maps in order of their keys.
std::string InOrder(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// protobuf leaves some marks of direction as they are. Outside of strings there are only newlines.
std::string WithoutInvisible(absl::string_view text) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n')) lines.push_back(Visible(line));
  return absl::StrJoin(lines, "\n");
}

}  // namespace

std::string WriteJson(const google::protobuf::Message& message, JsonStyle style) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = style.indented;
  options.always_print_primitive_fields = style.zeros;
  std::string text;
  const auto status = google::protobuf::util::BinaryToJsonString(
      Resolver(), absl::StrCat(kPrefix, "/", message.GetDescriptor()->full_name()),
      InOrder(message), &text, options);
  return status.ok() ? WithoutInvisible(absl::StripSuffix(text, "\n")) : "{}";
}

}  // namespace berth
