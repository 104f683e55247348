#include "support/proto_json.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/field_mask.pb.h"
#include "google/protobuf/message.h"
#include "google/protobuf/timestamp.pb.h"
#include "google/protobuf/util/field_mask_util.h"
#include "google/protobuf/util/time_util.h"
#include "support/quantity.h"
#include "support/shown_fields.h"
#include "support/utf8.h"
#include "support/visible.h"

namespace berth {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Most readers parse numbers as doubles, which hold every integer up to this one.
constexpr int64_t kLargestExact = int64_t{1} << 53;

// Also escapes what moves the cursor or changes the text direction: JSON is read on terminals too.
std::string Quoted(absl::string_view text) {
  constexpr size_t kLongestCharacter = 4;
  std::string out = "\"";
  while (!text.empty()) {
    if (FirstBadUtf8(text.substr(0, kLongestCharacter)) == 0) {
      out += "\\ufffd";
      text.remove_prefix(1);
      continue;
    }
    const absl::string_view before = text;
    const uint32_t code = TakeCharacter(&text);
    const absl::string_view one = before.substr(0, before.size() - text.size());
    if (one == "\"" || one == "\\") {
      absl::StrAppend(&out, "\\", one);
    } else if (one == "\n") {
      out += "\\n";
    } else if (one == "\t") {
      out += "\\t";
    } else if (FirstInvisible(one) == 0) {
      absl::StrAppendFormat(&out, "\\u%04x", code);
    } else {
      absl::StrAppend(&out, one);
    }
  }
  return out + "\"";
}

std::string RealText(double value, int digits) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  return ShortestReal(value, digits);
}

// Messages that are strings in JSON: timestamps, durations and field masks.
bool HasText(const Message& message, std::string* text) {
  using google::protobuf::util::FieldMaskUtil;
  using google::protobuf::util::TimeUtil;
  if (const auto* duration = dynamic_cast<const google::protobuf::Duration*>(&message)) {
    *text = TimeUtil::ToString(*duration);
  } else if (const auto* time = dynamic_cast<const google::protobuf::Timestamp*>(&message)) {
    *text = TimeUtil::ToString(*time);
  } else if (const auto* mask = dynamic_cast<const google::protobuf::FieldMask*>(&message)) {
    FieldMaskUtil::ToJsonString(*mask, text);
  } else {
    return false;
  }
  return true;
}

// A field's value, or its element `index` (-1 = not repeated).
class Scalar {
 public:
  Scalar(const Message& message, const FieldDescriptor* field, int index)
      : message_(message), field_(field), index_(index) {}

  std::string Json() const;

 private:
  template <class One, class Element>
  auto Get(One one, Element element) const {
    const Reflection& reflection = *message_.GetReflection();
    return index_ < 0 ? (reflection.*one)(message_, field_)
                      : (reflection.*element)(message_, field_, index_);
  }
  static std::string Signed(int64_t value) {
    const bool exact = value <= kLargestExact && value >= -kLargestExact;
    return exact ? absl::StrCat(value) : absl::StrCat("\"", value, "\"");
  }
  static std::string Unsigned(uint64_t value) {
    const bool exact = value <= uint64_t{kLargestExact};
    return exact ? absl::StrCat(value) : absl::StrCat("\"", value, "\"");
  }
  std::string Enum(int number) const {
    const auto* value = field_->enum_type()->FindValueByNumber(number);
    return value == nullptr ? absl::StrCat(number) : absl::StrCat("\"", value->name(), "\"");
  }
  std::string Text(const std::string& text) const {
    const bool bytes = field_->type() == FieldDescriptor::TYPE_BYTES;
    return Quoted(bytes ? absl::Base64Escape(text) : text);
  }

  const Message& message_;
  const FieldDescriptor* const field_;
  const int index_;
};

std::string Scalar::Json() const {
  switch (field_->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrCat(Get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32));
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(Get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32));
    case FieldDescriptor::CPPTYPE_INT64:
      return Signed(Get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64));
    case FieldDescriptor::CPPTYPE_UINT64:
      return Unsigned(Get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return RealText(double{Get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat)}, 9);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return RealText(Get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble), 17);
    case FieldDescriptor::CPPTYPE_BOOL:
      return Get(&Reflection::GetBool, &Reflection::GetRepeatedBool) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return Enum(Get(&Reflection::GetEnumValue, &Reflection::GetRepeatedEnumValue));
    case FieldDescriptor::CPPTYPE_STRING:
      return Text(Get(&Reflection::GetString, &Reflection::GetRepeatedString));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return "null";
}

class JsonWriter {
 public:
  explicit JsonWriter(JsonStyle style) : style_(style) {}

  void WriteMessage(const Message& message, bool in_spec);
  std::string Take() { return std::move(out_); }

 private:
  void WriteField(const Message& message, const FieldDescriptor* field, bool in_spec);
  void WriteList(const Message& message, const FieldDescriptor* field, bool in_spec);
  void WriteMap(const Message& message, const FieldDescriptor* field, bool in_spec);
  void WriteValue(const Message& message, const FieldDescriptor* field, int index, bool in_spec);
  std::vector<const FieldDescriptor*> Fields(const Message& message, bool in_spec) const;

  // Writes members or items between two brackets, each on its own line.
  void Open(char bracket) {
    out_ += bracket;
    ++depth_;
    empty_ = true;
  }
  void Next() {
    if (!empty_) out_ += ",";
    empty_ = false;
    NewLine();
  }
  void Close(char bracket) {
    --depth_;
    if (!empty_) NewLine();
    empty_ = false;
    out_ += bracket;
  }
  void NewLine() {
    if (style_.indented) absl::StrAppend(&out_, "\n", std::string(depth_, ' '));
  }
  void Key(const std::string& quoted) {
    absl::StrAppend(&out_, quoted, style_.indented ? ": " : ":");
  }

  const JsonStyle style_;
  std::string out_;
  size_t depth_ = 0;
  bool empty_ = true;
};

std::vector<const FieldDescriptor*> JsonWriter::Fields(const Message& message, bool in_spec) const {
  if (!style_.zeros) return ShownFields(message, in_spec);
  std::vector<const FieldDescriptor*> fields;
  const Descriptor* type = message.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    const bool absent = field->has_presence() && !message.GetReflection()->HasField(message, field);
    if (!absent) fields.push_back(field);
  }
  std::sort(fields.begin(), fields.end(),
            [](const auto* a, const auto* b) { return a->number() < b->number(); });
  return fields;
}

void JsonWriter::WriteMessage(const Message& message, bool in_spec) {
  std::string text;
  if (HasText(message, &text)) {
    out_ += Quoted(text);
    return;
  }
  in_spec |= IsSpec(message.GetDescriptor());
  Open('{');
  for (const FieldDescriptor* field : Fields(message, in_spec)) WriteField(message, field, in_spec);
  Close('}');
}

void JsonWriter::WriteField(const Message& message, const FieldDescriptor* field, bool in_spec) {
  Next();
  Key(Quoted(field->json_name()));
  if (field->is_map()) return WriteMap(message, field, in_spec);
  if (field->is_repeated()) return WriteList(message, field, in_spec);
  WriteValue(message, field, -1, in_spec);
}

void JsonWriter::WriteValue(const Message& message, const FieldDescriptor* field, int index,
                            bool in_spec) {
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    out_ += Scalar(message, field, index).Json();
    return;
  }
  const Reflection& reflection = *message.GetReflection();
  WriteMessage(index < 0 ? reflection.GetMessage(message, field)
                         : reflection.GetRepeatedMessage(message, field, index),
               in_spec);
}

void JsonWriter::WriteList(const Message& message, const FieldDescriptor* field, bool in_spec) {
  Open('[');
  for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
    Next();
    WriteValue(message, field, i, in_spec);
  }
  Close(']');
}

// Sorted by key.
void JsonWriter::WriteMap(const Message& message, const FieldDescriptor* field, bool in_spec) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<std::pair<std::string, const Message*>> entries;
  for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, field, i);
    const std::string key = Scalar(entry, field->message_type()->map_key(), -1).Json();
    entries.emplace_back(key[0] == '"' ? key : absl::StrCat("\"", key, "\""), &entry);
  }
  std::sort(entries.begin(), entries.end());
  Open('{');
  for (const auto& [key, entry] : entries) {
    Next();
    Key(key);
    WriteValue(*entry, field->message_type()->map_value(), -1, in_spec);
  }
  Close('}');
}

}  // namespace

std::string WriteJson(const Message& message, JsonStyle style) {
  JsonWriter writer(style);
  writer.WriteMessage(message, false);
  return writer.Take();
}

}  // namespace berth
