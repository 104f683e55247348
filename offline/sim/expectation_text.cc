#include "offline/sim/expectation_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "offline/sim/names.h"
#include "support/yaml_proto_scalar.h"

namespace berth {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::vector<const FieldDescriptor*> SetFields(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  return fields;
}

std::string KeyOf(const Message& entry) {
  return entry.GetReflection()->GetString(entry, entry.GetDescriptor()->map_key());
}

// The entries of a map with string keys, sorted by key: the order of the map differs from run to
// run.
std::vector<std::pair<std::string, const Message*>> EntriesOf(const Message& message,
                                                              const FieldDescriptor* field) {
  const auto* reflection = message.GetReflection();
  std::vector<std::pair<std::string, const Message*>> entries;
  for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
    const Message& entry = reflection->GetRepeatedMessage(message, field, i);
    entries.emplace_back(KeyOf(entry), &entry);
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return NaturalLess(a.first, b.first); });
  return entries;
}

// The entry with this key in a map with string keys; null if there is none.
const Message* FindEntry(const Message& message, const FieldDescriptor* field,
                         const std::string& key) {
  const auto* reflection = message.GetReflection();
  for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
    const Message& entry = reflection->GetRepeatedMessage(message, field, i);
    if (KeyOf(entry) == key) return &entry;
  }
  return nullptr;
}

bool IsMessage(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         !IsScalarMessage(field->message_type());
}

std::string ValueText(const Message& message, const FieldDescriptor* field, int index) {
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    return ScalarText(message, field, index);
  }
  const auto* reflection = message.GetReflection();
  const Message& value = index < 0 ? reflection->GetMessage(message, field)
                                   : reflection->GetRepeatedMessage(message, field, index);
  return IsScalarMessage(value.GetDescriptor()) ? ScalarMessageText(value) : FlowText(value);
}

std::string MapText(const Message& message, const FieldDescriptor* field) {
  std::vector<std::string> parts;
  for (const auto& [key, entry] : EntriesOf(message, field)) {
    const std::string value = ValueText(*entry, entry->GetDescriptor()->map_value(), -1);
    parts.push_back(absl::StrCat(key, ": ", value));
  }
  return absl::StrCat("{", absl::StrJoin(parts, ", "), "}");
}

std::string FieldText(const Message& message, const FieldDescriptor* field) {
  if (field->is_map()) return MapText(message, field);
  const auto* reflection = message.GetReflection();
  if (!field->is_repeated()) {
    const bool set = !field->has_presence() || reflection->HasField(message, field);
    return set ? ValueText(message, field, -1) : "nothing";
  }
  std::vector<std::string> parts;
  for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
    parts.push_back(ValueText(message, field, i));
  }
  return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
}

void DiffMap(const Message& expected, const Message& actual, const FieldDescriptor* field,
             const std::string& path, std::vector<std::string>* lines) {
  for (const auto& [key, found] : EntriesOf(expected, field)) {
    const Message& entry = *found;
    const FieldDescriptor* value = entry.GetDescriptor()->map_value();
    const std::string here = absl::StrCat(path, ".", key);
    const Message* other = FindEntry(actual, field, key);
    if (other == nullptr) {
      lines->push_back(absl::StrCat(here, ": there is none"));
    } else if (IsMessage(value)) {
      DiffFields(entry.GetReflection()->GetMessage(entry, value),
                 other->GetReflection()->GetMessage(*other, value), here, lines);
    } else if (FieldText(entry, value) != FieldText(*other, value)) {
      lines->push_back(absl::StrCat(here, ": expected ", FieldText(entry, value), ", got ",
                                    FieldText(*other, value)));
    }
  }
}

void CopyMap(const Message& named, const Message& actual, const FieldDescriptor* field,
             Message* to) {
  const auto* reflection = named.GetReflection();
  for (int i = 0; i < reflection->FieldSize(named, field); ++i) {
    const Message& entry = reflection->GetRepeatedMessage(named, field, i);
    const Message* other = FindEntry(actual, field, KeyOf(entry));
    if (other == nullptr) continue;
    const FieldDescriptor* value = entry.GetDescriptor()->map_value();
    Message* copy = to->GetReflection()->AddMessage(to, field);
    copy->CopyFrom(*other);
    if (!IsMessage(value)) continue;
    Message* part = copy->GetReflection()->MutableMessage(copy, value);
    part->Clear();
    CopyNamed(entry.GetReflection()->GetMessage(entry, value),
              other->GetReflection()->GetMessage(*other, value), part);
  }
}

void CopyField(const Message& from, const FieldDescriptor* field, Message* to) {
  std::vector<const FieldDescriptor*> others;
  Message* all = from.New();
  all->CopyFrom(from);
  from.GetReflection()->ListFields(*all, &others);
  for (const FieldDescriptor* other : others) {
    if (other != field) all->GetReflection()->ClearField(all, other);
  }
  to->MergeFrom(*all);
  delete all;
}

}  // namespace

void DiffFields(const Message& expected, const Message& actual, const std::string& path,
                std::vector<std::string>* lines) {
  for (const FieldDescriptor* field : SetFields(expected)) {
    const std::string here = absl::StrCat(path, path.empty() ? "" : ".", field->json_name());
    if (field->is_map()) {
      DiffMap(expected, actual, field, here, lines);
      continue;
    }
    if (IsMessage(field) && !field->is_repeated()) {
      const auto* reflection = expected.GetReflection();
      DiffFields(reflection->GetMessage(expected, field), reflection->GetMessage(actual, field),
                 here, lines);
      continue;
    }
    const std::string want = FieldText(expected, field), got = FieldText(actual, field);
    if (want != got) lines->push_back(absl::StrCat(here, ": expected ", want, ", got ", got));
  }
}

void CopyNamed(const Message& named, const Message& actual, Message* to) {
  for (const FieldDescriptor* field : SetFields(named)) {
    const auto* reflection = named.GetReflection();
    if (field->is_map()) {
      CopyMap(named, actual, field, to);
    } else if (IsMessage(field) && !field->is_repeated()) {
      CopyNamed(reflection->GetMessage(named, field), reflection->GetMessage(actual, field),
                reflection->MutableMessage(to, field));
    } else {
      CopyField(actual, field, to);
    }
  }
}

std::string FlowText(const Message& message) {
  std::vector<std::string> parts;
  for (const FieldDescriptor* field : SetFields(message)) {
    parts.push_back(absl::StrCat(field->json_name(), ": ", FieldText(message, field)));
  }
  return absl::StrCat("{", absl::StrJoin(parts, ", "), "}");
}

}  // namespace berth
