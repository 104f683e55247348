#include "clients/cli/output.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/proto_json.h"
#include "support/yaml_proto.h"

namespace berth {

std::string JsonOf(const google::protobuf::Message& message) {
  return WriteJson(message, {.indented = true});
}

std::string JsonOf(const google::protobuf::Message& message,
                   const google::protobuf::Message& besides) {
  const std::string first = JsonOf(message), second = JsonOf(besides);
  if (second == "{}") return first;
  if (first == "{}") return second;
  // "{\n ...\n}" each.
  return absl::StrCat(first.substr(0, first.size() - 2), ",", second.substr(1));
}

std::string YamlOf(const google::protobuf::Message& message) {
  const std::string text = WriteYaml(message, {.numbers = true});
  return text == "{}\n" ? "" : text;
}

void PrintDocuments(Session& session, const std::vector<std::string>& documents, bool single) {
  std::ostream& out = session.out();
  const Format format = session.options.format;
  if (format == Format::kJson) {
    if (!single) out << "[\n";
    out << absl::StrJoin(documents, ",\n");
    if (!documents.empty()) out << "\n";
    if (!single) out << "]\n";
    return;
  }
  if (format == Format::kYaml) {
    for (const std::string& document : documents) session.NextDocument() << document;
    return;
  }
  out << absl::StrJoin(documents, format == Format::kName ? "" : "\n");
}

}  // namespace berth
