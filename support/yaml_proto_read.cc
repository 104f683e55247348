#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "berth/v1/types.pb.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "support/nearest.h"
#include "support/text_file.h"
#include "support/yaml_proto.h"
#include "support/yaml_proto_scalar.h"
#include "support/yaml_proto_sugar.h"

namespace berth {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const FieldDescriptor* FindField(const Descriptor* type, absl::string_view key) {
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->json_name() == key || field->name() == key) return field;
  }
  return nullptr;
}

std::vector<std::string> KnownKeys(const Descriptor* type) {
  std::vector<std::string> keys;
  for (int i = 0; i < type->field_count(); ++i) keys.push_back(type->field(i)->json_name());
  return keys;
}

// Lists of messages that begin with name and value may be written as maps.
bool IsNameAndValue(const Descriptor* type) {
  return type->field_count() >= 2 && type->field(0)->name() == "name" &&
         type->field(1)->name() == "value" &&
         type->field(0)->cpp_type() == FieldDescriptor::CPPTYPE_STRING &&
         type->field(1)->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
}

const char* KindName(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kScalar:
      return "a single value";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map of keys";
  }
  return "";
}

class Reader {
 public:
  Reader(YamlErrors* errors, const YamlReadOptions& options)
      : errors_(*errors), options_(options) {}

  void ReadDocument(const YamlNode& node, Message* message) {
    if (!node.is_null()) ReadMessage(node, "the document", "", message);
  }

 private:
  // Messages use `name`, positions use `path`.
  void ReadMessage(const YamlNode& node, const std::string& name, const std::string& path,
                   Message* message);
  void ReadEntries(const YamlNode& node, const std::string& path, Message* message);
  void ReadField(const YamlNode& node, const FieldDescriptor* field, const std::string& path,
                 Message* message);
  void ReadList(const YamlNode& node, const FieldDescriptor* field, const std::string& path,
                Message* message);
  void ReadElement(const YamlNode& node, const FieldDescriptor* field, const std::string& path,
                   Message* message);
  void ReadMap(const YamlNode& node, const FieldDescriptor* field, const std::string& path,
               Message* message);
  void ReadPairs(const YamlNode& node, const FieldDescriptor* field, const std::string& path,
                 Message* message);
  void ReadScalar(const YamlNode& node, const FieldDescriptor* field, Message* message);
  bool ReadSugar(const YamlNode& key, const YamlNode& value, const std::string& path,
                 Message* message);
  void ReadDeviceKind(const YamlNode& key, const YamlNode& value, const std::string& path,
                      Message* message);
  void UnknownKey(const YamlNode& key, const std::string& path, const Descriptor* type);
  bool HasHint(const Descriptor& type, const YamlNode& key, const YamlNode& value);

  void Wrong(const YamlNode& node, const std::string& name, absl::string_view expected) {
    errors_.Add(node.position,
                absl::StrCat(name, ": expected ", expected, ", got ", KindName(node)));
  }
  void Check(const YamlNode& node, const std::string& name, const absl::Status& status) {
    if (!status.ok()) errors_.Add(node.position, absl::StrCat(name, ": ", status.message()));
  }
  void Remember(const std::string& path, YamlPosition position) {
    if (options_.positions != nullptr) options_.positions->emplace(path, position);
  }

  YamlErrors& errors_;
  const YamlReadOptions& options_;
};

std::string Join(const std::string& path, const std::string& name) {
  return path.empty() ? name : absl::StrCat(path, ".", name);
}

void Reader::ReadMessage(const YamlNode& node, const std::string& name, const std::string& path,
                         Message* message) {
  const Descriptor* type = message->GetDescriptor();
  if (IsScalarMessage(type)) {
    if (node.is_scalar()) return Check(node, name, SetScalarMessage(node, message));
    return Wrong(node, name, "a single value");
  }
  if (node.is_scalar() && type == v1::DeviceRequest::descriptor()) {
    return ReadScalar(node, type->FindFieldByName("count"), message);
  }
  if (!node.is_map()) return Wrong(node, name, "a map of keys");
  ReadEntries(node, path, message);
}

void Reader::ReadEntries(const YamlNode& node, const std::string& path, Message* message) {
  const Descriptor* type = message->GetDescriptor();
  std::set<const FieldDescriptor*> seen;
  std::map<const google::protobuf::OneofDescriptor*, const FieldDescriptor*> chosen;
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const YamlNode& key = node.keys[i];
    const FieldDescriptor* field = FindField(type, key.text);
    if (field == nullptr && HasHint(*type, key, node.items[i])) continue;
    if (ReadSugar(key, node.items[i], path, message)) continue;
    if (field == nullptr) {
      UnknownKey(key, path, type);
      continue;
    }
    if (!seen.insert(field).second) {
      errors_.Add(
          key.position,
          absl::StrCat("repeated key \"", key.text, "\" (also written \"",
                       key.text == field->name() ? field->json_name() : field->name(), "\")"));
      continue;
    }
    if (const auto* oneof = field->real_containing_oneof()) {
      const auto inserted = chosen.emplace(oneof, field);
      if (!inserted.second) {
        errors_.Add(key.position,
                    absl::StrCat("\"", key.text, "\" conflicts with \"",
                                 inserted.first->second->json_name(), "\": set only one of them"));
        continue;
      }
    }
    const std::string field_path = Join(path, field->name());
    const bool scalar = node.items[i].is_scalar();
    Remember(field_path, scalar ? node.items[i].position : key.position);
    ReadField(node.items[i], field, field_path, message);
  }
}

// Handles keys that do not mean the field of their name.
bool Reader::ReadSugar(const YamlNode& key, const YamlNode& value, const std::string& path,
                       Message* message) {
  const Descriptor* type = message->GetDescriptor();
  const FieldDescriptor* field = FindField(type, key.text);
  if (type == v1::TopologyConstraint::descriptor() && field != nullptr &&
      field->name() == "highest_tier") {
    int64_t number = 0;
    if (!value.is_scalar() || absl::SimpleAtoi(value.text, &number)) return false;
    Remember(Join(path, "highest_tier_name"), value.position);
    ReadScalar(value, type->FindFieldByName("highest_tier_name"), message);
    return true;
  }
  if (field == nullptr && TakesDeviceKinds(type) && MayBeDeviceKind(key.text, KnownKeys(type))) {
    ReadDeviceKind(key, value, path, message);
    return true;
  }
  return false;
}

void Reader::ReadDeviceKind(const YamlNode& key, const YamlNode& value, const std::string& path,
                            Message* message) {
  if (auto* list = dynamic_cast<v1::ResourceList*>(message)) {
    double count = 0;
    Remember(absl::StrCat(Join(path, "counts"), "[\"", key.text, "\"]"), value.position);
    if (!value.is_scalar() || !absl::SimpleAtod(value.text, &count) || !std::isfinite(count)) {
      errors_.Add(value.position, absl::StrCat(key.text, ": expected a number"));
    }
    if (!list->mutable_counts()->insert({key.text, count}).second) {
      errors_.Add(key.position, absl::StrCat("\"", key.text, "\" is also set in \"counts\""));
    }
    return;
  }
  auto* request = dynamic_cast<v1::ResourceRequest*>(message);
  const std::string device_path =
      absl::StrCat(Join(path, "devices"), "[", request->devices_size(), "]");
  v1::DeviceRequest* device = request->add_devices();
  Remember(device_path, value.is_scalar() ? value.position : key.position);
  ReadMessage(value, key.text, device_path, device);
  if (!device->kind().empty() && device->kind() != key.text) {
    errors_.Add(value.position, absl::StrCat("kind \"", device->kind(),
                                             "\" does not match the key \"", key.text, "\""));
  }
  device->set_kind(key.text);
}

// Hints come before keys become device kinds.
bool Reader::HasHint(const Descriptor& type, const YamlNode& key, const YamlNode& value) {
  if (!options_.key_hint || options_.ignored.count(key.text) > 0) return false;
  const std::string hint = options_.key_hint(type, key, value);
  if (hint.empty()) return false;
  errors_.Add(key.position, absl::StrCat(options_.refusal, " \"", key.text, "\": ", hint));
  return true;
}

void Reader::UnknownKey(const YamlNode& key, const std::string& path, const Descriptor* type) {
  if (options_.ignored.count(key.text) > 0) {
    if (options_.skipped != nullptr) {
      options_.skipped->Add(key.position, absl::StrCat(key.text, " is ignored"));
    }
    return;
  }
  std::vector<std::string> known = KnownKeys(type);
  if (path.empty())
    known.insert(known.begin(), options_.also_known.begin(), options_.also_known.end());
  if (TakesDeviceKinds(type)) {
    known.insert(known.end(), WellKnownDeviceKinds().begin(), WellKnownDeviceKinds().end());
  }
  const auto hint = options_.hints.find(key.text);
  if (hint != options_.hints.end()) {
    return errors_.Add(key.position,
                       absl::StrCat(options_.refusal, " \"", key.text, "\": ", hint->second));
  }
  errors_.Add(key.position, UnknownWord(options_.refusal, key.text, known));
}

void Reader::ReadField(const YamlNode& node, const FieldDescriptor* field, const std::string& path,
                       Message* message) {
  const bool single_value =
      field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated();
  if (node.is_null() &&
      (single_value || (!field->is_repeated() && IsScalarMessage(field->message_type())))) {
    return errors_.Add(node.position, absl::StrCat("\"", field->json_name(), "\" has no value"));
  }
  if (node.is_null()) return;
  if (field->is_map()) return ReadMap(node, field, path, message);
  if (field->is_repeated()) return ReadList(node, field, path, message);
  if (single_value) return ReadScalar(node, field, message);
  ReadMessage(node, field->json_name(), path,
              message->GetReflection()->MutableMessage(message, field));
}

void Reader::ReadList(const YamlNode& node, const FieldDescriptor* field, const std::string& path,
                      Message* message) {
  const bool messages = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (node.is_map() && messages && IsNameAndValue(field->message_type()))
    return ReadPairs(node, field, path, message);
  if (node.is_scalar() && (!messages || IsScalarMessage(field->message_type()))) {
    return ReadElement(node, field, absl::StrCat(path, "[0]"), message);
  }
  if (!node.is_list()) return Wrong(node, field->json_name(), "a list");
  for (size_t i = 0; i < node.items.size(); ++i) {
    const std::string item_path = absl::StrCat(path, "[", i, "]");
    if (node.items[i].is_null()) {
      errors_.Add(node.position,
                  absl::StrCat(field->json_name(), ": item ", i + 1, " has no value"));
      continue;
    }
    Remember(item_path, node.items[i].position);
    ReadElement(node.items[i], field, item_path, message);
  }
}

void Reader::ReadElement(const YamlNode& node, const FieldDescriptor* field,
                         const std::string& path, Message* message) {
  const std::string& name = field->json_name();
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
    return ReadScalar(node, field, message);
  ReadMessage(node, name, path, message->GetReflection()->AddMessage(message, field));
}

void Reader::ReadMap(const YamlNode& node, const FieldDescriptor* field, const std::string& path,
                     Message* message) {
  if (!node.is_map()) return Wrong(node, field->json_name(), "a map of keys");
  const FieldDescriptor* key_field = field->message_type()->map_key();
  const FieldDescriptor* value_field = field->message_type()->map_value();
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const std::string entry_path = absl::StrCat(path, "[\"", node.keys[i].text, "\"]");
    Remember(entry_path, node.items[i].position);
    if (node.items[i].is_null()) {
      errors_.Add(node.keys[i].position, absl::StrCat("\"", node.keys[i].text, "\" has no value"));
      continue;
    }
    Message* entry = message->GetReflection()->AddMessage(message, field);
    Check(node.keys[i], field->json_name(), SetScalar(node.keys[i], key_field, entry));
    ReadField(node.items[i], value_field, entry_path, entry);
  }
}

void Reader::ReadPairs(const YamlNode& node, const FieldDescriptor* field, const std::string& path,
                       Message* message) {
  for (size_t i = 0; i < node.keys.size(); ++i) {
    Remember(absl::StrCat(path, "[", i, "]"), node.keys[i].position);
    Message* pair = message->GetReflection()->AddMessage(message, field);
    ReadScalar(node.keys[i], field->message_type()->field(0), pair);
    ReadField(node.items[i], field->message_type()->field(1), absl::StrCat(path, "[", i, "].value"),
              pair);
  }
}

void Reader::ReadScalar(const YamlNode& node, const FieldDescriptor* field, Message* message) {
  const std::string& name = field->json_name();
  if (!node.is_scalar()) return Wrong(node, name, "a single value");
  Check(node, name, SetScalar(node, field, message));
}

}  // namespace

void ReadYamlNode(const YamlNode& node, Message* message, YamlErrors* errors,
                  const YamlReadOptions& options) {
  Reader(errors, options).ReadDocument(node, message);
}

absl::Status ReadYaml(absl::string_view text, absl::string_view file, Message* message) {
  YamlErrors errors(file);
  const std::vector<YamlNode> documents = ParseYamlTree(text, &errors);
  if (documents.size() > 1)
    errors.Add(documents[1].position, "expected one document, found a second");
  if (!documents.empty()) ReadYamlNode(documents[0], message, &errors);
  return errors.status();
}

absl::Status ReadYamlFile(const std::string& path, Message* message) {
  const absl::StatusOr<std::string> text = ReadTextFile(path);
  return text.ok() ? ReadYaml(*text, path, message) : text.status();
}

}  // namespace berth
