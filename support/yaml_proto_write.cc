#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "berth/v1/types.pb.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/message_differencer.h"
#include "support/shown_fields.h"
#include "support/yaml_proto.h"
#include "support/yaml_proto_scalar.h"
#include "support/yaml_proto_sugar.h"

namespace berth {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr size_t kMaxFlowWidth = 80;

bool IsMessage(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

class YamlWriter {
 public:
  explicit YamlWriter(YamlStyle style) : style_(style) {}
  std::string Take() { return std::move(out_); }

  // Writes the fields of `message`, each on a line indented by `indent`. The first line continues
  // the current line of the output.
  void WriteFields(const Message& message, int indent);

 private:
  void WriteField(const Message& message, const FieldDescriptor* field, int indent);
  void WriteMap(const Message& message, const FieldDescriptor* field, int indent);
  void WriteList(const Message& message, const FieldDescriptor* field, int indent);
  void WriteScalars(const Message& message, const FieldDescriptor* field, int indent);
  // Writes devices as keys, "gpu: 8". False if that is impossible.
  bool WriteDevices(const Message& message, const FieldDescriptor* field, int indent);
  bool WriteCounts(const Message& message, const FieldDescriptor* field, int indent);
  // Writes what follows "key:" for a message.
  void WriteValue(const Message& message, int indent);

  std::vector<const FieldDescriptor*> Fields(const Message& message) const {
    if (style_.numbers) {
      return ShownFields(message, spec_depth_ > 0 || IsSpec(message.GetDescriptor()));
    }
    std::vector<const FieldDescriptor*> set;
    message.GetReflection()->ListFields(message, &set);
    return set;
  }
  bool HasFields(const Message& message) const { return !Fields(message).empty(); }

  void StartLine(int indent) {
    if (out_.empty() || out_.back() == '\n') out_.append(static_cast<size_t>(indent), ' ');
  }

  const YamlStyle style_;
  int spec_depth_ = 0;  // number of enclosing specs
  std::string out_;
};

void YamlWriter::WriteFields(const Message& message, int indent) {
  const int spec = IsSpec(message.GetDescriptor()) ? 1 : 0;
  spec_depth_ += spec;
  for (const FieldDescriptor* field : Fields(message)) WriteField(message, field, indent);
  spec_depth_ -= spec;
}

void YamlWriter::WriteField(const Message& message, const FieldDescriptor* field, int indent) {
  if (WriteDevices(message, field, indent) || WriteCounts(message, field, indent)) return;
  StartLine(indent);
  absl::StrAppend(&out_, field->json_name(), ":");
  if (field->is_map()) return WriteMap(message, field, indent + 2);
  if (field->is_repeated()) return WriteList(message, field, indent);
  if (IsMessage(field))
    return WriteValue(message.GetReflection()->GetMessage(message, field), indent + 2);
  absl::StrAppend(&out_, " ", ScalarText(message, field, -1), "\n");
}

bool YamlWriter::WriteDevices(const Message& message, const FieldDescriptor* field, int indent) {
  const auto* request = dynamic_cast<const v1::ResourceRequest*>(&message);
  if (request == nullptr || field->number() != v1::ResourceRequest::kDevicesFieldNumber)
    return false;
  std::set<std::string> kinds;
  for (const v1::DeviceRequest& device : request->devices()) {
    if (!IsWellKnownDeviceKind(device.kind()) || !kinds.insert(device.kind()).second) return false;
  }
  for (v1::DeviceRequest device : request->devices()) {
    StartLine(indent);
    absl::StrAppend(&out_, device.kind(), ":");
    device.clear_kind();
    v1::DeviceRequest count_only;
    count_only.set_count(device.count());
    if (google::protobuf::util::MessageDifferencer::Equals(device, count_only)) {
      absl::StrAppend(&out_, " ", device.count(), "\n");
    } else {
      WriteValue(device, indent + 2);
    }
  }
  return true;
}

bool YamlWriter::WriteCounts(const Message& message, const FieldDescriptor* field, int indent) {
  const auto* list = dynamic_cast<const v1::ResourceList*>(&message);
  if (list == nullptr || field->number() != v1::ResourceList::kCountsFieldNumber) return false;
  const std::map<std::string, double> counts(list->counts().begin(), list->counts().end());
  for (const auto& count : counts) {
    if (!IsWellKnownDeviceKind(count.first)) return false;
  }
  for (const auto& count : counts) {
    StartLine(indent);
    absl::StrAppendFormat(&out_, "%s: %.15g\n", count.first, count.second);
  }
  return true;
}

void YamlWriter::WriteValue(const Message& message, int indent) {
  if (IsScalarMessage(message.GetDescriptor())) {
    absl::StrAppend(&out_, " ", ScalarMessageText(message), "\n");
  } else if (!HasFields(message)) {
    out_ += " {}\n";
  } else {
    out_ += "\n";
    WriteFields(message, indent);
  }
}

void YamlWriter::WriteMap(const Message& message, const FieldDescriptor* field, int indent) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<std::pair<std::string, const Message*>> entries;
  for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, field, i);
    entries.emplace_back(ScalarText(entry, field->message_type()->map_key(), -1), &entry);
  }
  std::sort(entries.begin(), entries.end());
  out_ += "\n";
  const FieldDescriptor* value = field->message_type()->map_value();
  for (const auto& entry : entries) {
    StartLine(indent);
    absl::StrAppend(&out_, entry.first, ":");
    if (IsMessage(value)) {
      WriteValue(entry.second->GetReflection()->GetMessage(*entry.second, value), indent + 2);
    } else {
      absl::StrAppend(&out_, " ", ScalarText(*entry.second, value, -1), "\n");
    }
  }
}

void YamlWriter::WriteList(const Message& message, const FieldDescriptor* field, int indent) {
  const Reflection& reflection = *message.GetReflection();
  if (!IsMessage(field)) return WriteScalars(message, field, indent);
  out_ += "\n";
  for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
    const Message& item = reflection.GetRepeatedMessage(message, field, i);
    StartLine(indent);
    out_ += "-";
    if (IsScalarMessage(item.GetDescriptor()) || !HasFields(item)) {
      WriteValue(item, indent + 2);
    } else {
      out_ += " ";
      WriteFields(item, indent + 2);
    }
  }
}

// On one line if it is short: [a, b].
void YamlWriter::WriteScalars(const Message& message, const FieldDescriptor* field, int indent) {
  std::vector<std::string> items;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
    items.push_back(ScalarText(message, field, i));
  }
  const std::string flow = absl::StrCat(" [", absl::StrJoin(items, ", "), "]\n");
  if (flow.size() <= kMaxFlowWidth) {
    out_ += flow;
    return;
  }
  out_ += "\n";
  for (const std::string& item : items) {
    StartLine(indent);
    absl::StrAppend(&out_, "- ", item, "\n");
  }
}

}  // namespace

std::string WriteYaml(const Message& message, YamlStyle style) {
  if (IsScalarMessage(message.GetDescriptor())) return ScalarMessageText(message) + "\n";
  YamlWriter writer(style);
  writer.WriteFields(message, 0);
  std::string text = writer.Take();
  return text.empty() ? "{}\n" : text;
}

}  // namespace berth
