#include "support/yaml_proto_scalar.h"

#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "berth/v1/types.pb.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "support/nearest.h"
#include "support/proto_time.h"
#include "support/quantity.h"
#include "support/visible.h"

namespace berth {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::Duration;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::Timestamp;

// Sets a field, or appends to it if it is repeated.
class FieldWriter {
 public:
  FieldWriter(Message* message, const FieldDescriptor* field) : message_(message), field_(field) {}

  void Int32(int32_t v) { Put(&Reflection::SetInt32, &Reflection::AddInt32, v); }
  void Int64(int64_t v) { Put(&Reflection::SetInt64, &Reflection::AddInt64, v); }
  void UInt32(uint32_t v) { Put(&Reflection::SetUInt32, &Reflection::AddUInt32, v); }
  void UInt64(uint64_t v) { Put(&Reflection::SetUInt64, &Reflection::AddUInt64, v); }
  void Float(float v) { Put(&Reflection::SetFloat, &Reflection::AddFloat, v); }
  void Double(double v) { Put(&Reflection::SetDouble, &Reflection::AddDouble, v); }
  void Bool(bool v) { Put(&Reflection::SetBool, &Reflection::AddBool, v); }
  void Text(const std::string& v) { Put(&Reflection::SetString, &Reflection::AddString, v); }
  void Enum(const EnumValueDescriptor* v) { Put(&Reflection::SetEnum, &Reflection::AddEnum, v); }

 private:
  template <class Set, class Add, class T>
  void Put(Set set, Add add, const T& value) {
    const Reflection& reflection = *message_->GetReflection();
    if (field_->is_repeated()) {
      (reflection.*add)(message_, field_, value);
    } else {
      (reflection.*set)(message_, field_, value);
    }
  }
  Message* message_;
  const FieldDescriptor* field_;
};

absl::Status Expected(absl::string_view what, const YamlNode& node) {
  return absl::InvalidArgumentError(absl::StrCat("expected ", what, ", got \"", node.text, "\""));
}

bool IsWholeNumber(absl::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  if (text.empty()) return false;
  for (const char c : text) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return false;
  }
  return true;
}

// Numbers may be quoted, as JSON writes 64-bit integers that way.
template <class T>
absl::StatusOr<T> ParseWhole(const YamlNode& node) {
  if (!IsWholeNumber(node.text)) return Expected("a whole number", node);
  T value = 0;
  if (!absl::SimpleAtoi(node.text, &value)) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.text, " is out of range: ", std::numeric_limits<T>::min(), " to ",
                     std::numeric_limits<T>::max()));
  }
  return value;
}

absl::StatusOr<int64_t> ParseInt64(const YamlNode& node, const FieldDescriptor* field) {
  switch (field->options().GetExtension(v1::quantity)) {
    case v1::CPU_MILLIS:
      return ParseCpuMillis(node.text);
    case v1::BYTES:
      return ParseBytes(node.text);
    default:
      return ParseWhole<int64_t>(node);
  }
}

absl::StatusOr<double> ParseReal(const YamlNode& node) {
  double value = 0;
  if (!absl::SimpleAtod(node.text, &value) || !std::isfinite(value))
    return Expected("a number", node);
  return value;
}

absl::StatusOr<bool> ParseBool(const YamlNode& node) {
  if (!node.quoted && node.text == "true") return true;
  if (!node.quoted && node.text == "false") return false;
  return Expected("true or false", node);
}

absl::StatusOr<std::string> ParseText(const YamlNode& node, const FieldDescriptor* field) {
  if (field->type() != FieldDescriptor::TYPE_BYTES) return node.text;
  std::string bytes;
  if (!absl::Base64Unescape(node.text, &bytes)) return Expected("base64", node);
  return bytes;
}

absl::StatusOr<const EnumValueDescriptor*> ParseEnum(const YamlNode& node,
                                                     const FieldDescriptor* field) {
  const EnumValueDescriptor* value = FindEnumValue(field->enum_type(), node.text);
  if (value != nullptr) return value;
  const std::vector<std::string> known = EnumTexts(field->enum_type());
  const std::string nearest = NearestWord(node.text, known);
  return absl::InvalidArgumentError(
      absl::StrCat("unknown value \"", node.text, "\"; known: ", absl::StrJoin(known, ", "),
                   nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?")));
}

template <class T, class Put>
absl::Status Store(const absl::StatusOr<T>& value, Put put) {
  if (value.ok()) put(*value);
  return value.status();
}

// The prefix that all value names share, up to an underscore: "JOB_" of JobState.
absl::string_view CommonPrefix(const EnumDescriptor* type) {
  absl::string_view prefix = type->value(0)->name();
  for (int i = 1; i < type->value_count(); ++i) {
    const absl::string_view name = type->value(i)->name();
    size_t same = 0;
    while (same < prefix.size() && same < name.size() && prefix[same] == name[same]) ++same;
    prefix = prefix.substr(0, same);
  }
  const size_t underscore = prefix.rfind('_');
  return underscore == absl::string_view::npos ? "" : prefix.substr(0, underscore + 1);
}

std::string Letters(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != '_' && c != '-') out += absl::ascii_tolower(static_cast<unsigned char>(c));
  }
  return out;
}

bool IsPlainChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_./+-=$", c);
}

// Accepts only words that every YAML reader takes for text; others are quoted.
bool IsPlainSafe(absl::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (!IsPlainChar(c)) return false;
  }
  absl::string_view word = text;
  for (int dashes = 0; dashes < 2 && absl::ConsumePrefix(&word, "-"); ++dashes) {
  }
  if (word.empty() || !(absl::ascii_isalpha(static_cast<unsigned char>(word[0])) ||
                        absl::StrContains("_/$", word[0]))) {
    const bool dotted_word = text.find_first_not_of("0123456789.+-eE_") != absl::string_view::npos;
    return !word.empty() && word == text &&
           absl::ascii_isdigit(static_cast<unsigned char>(text[0])) && dotted_word &&
           !absl::StartsWithIgnoreCase(text, "0x") && !absl::StartsWithIgnoreCase(text, "0o");
  }
  for (const char* reserved :
       {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"}) {
    if (absl::EqualsIgnoreCase(text, reserved)) return false;
  }
  return true;
}

std::string Int64Text(int64_t value, const FieldDescriptor* field) {
  switch (field->options().GetExtension(v1::quantity)) {
    case v1::CPU_MILLIS:
      return FormatCpuMillis(value);
    case v1::BYTES:
      return FormatBytes(value);
    default:
      return absl::StrCat(value);
  }
}

// Calls the getter for a single field or for one element.
template <class Get, class GetOne>
auto Read(const Message& message, const FieldDescriptor* field, int index, Get get,
          GetOne get_one) {
  const Reflection& reflection = *message.GetReflection();
  return index < 0 ? (reflection.*get)(message, field)
                   : (reflection.*get_one)(message, field, index);
}

}  // namespace

bool IsScalarMessage(const Descriptor* type) {
  return type == Duration::descriptor() || type == Timestamp::descriptor();
}

absl::Status SetScalar(const YamlNode& node, const FieldDescriptor* field, Message* message) {
  FieldWriter writer(message, field);
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return Store(ParseWhole<int32_t>(node), [&](int32_t v) { writer.Int32(v); });
    case FieldDescriptor::CPPTYPE_INT64:
      return Store(ParseInt64(node, field), [&](int64_t v) { writer.Int64(v); });
    case FieldDescriptor::CPPTYPE_UINT32:
      return Store(ParseWhole<uint32_t>(node), [&](uint32_t v) { writer.UInt32(v); });
    case FieldDescriptor::CPPTYPE_UINT64:
      return Store(ParseWhole<uint64_t>(node), [&](uint64_t v) { writer.UInt64(v); });
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Store(ParseReal(node), [&](double v) { writer.Float(static_cast<float>(v)); });
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Store(ParseReal(node), [&](double v) { writer.Double(v); });
    case FieldDescriptor::CPPTYPE_BOOL:
      return Store(ParseBool(node), [&](bool v) { writer.Bool(v); });
    case FieldDescriptor::CPPTYPE_ENUM:
      return Store(ParseEnum(node, field), [&](const EnumValueDescriptor* v) { writer.Enum(v); });
    case FieldDescriptor::CPPTYPE_STRING:
      return Store(ParseText(node, field), [&](const std::string& v) { writer.Text(v); });
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return Expected("a map of keys", node);
}

absl::Status SetScalarMessage(const YamlNode& node, Message* message) {
  if (auto* duration = dynamic_cast<Duration*>(message)) {
    const absl::StatusOr<SecondsAndNanos> parsed = ParseDuration(node.text);
    if (!parsed.ok()) return parsed.status();
    duration->set_seconds(parsed->seconds);
    duration->set_nanos(parsed->nanos);
    return absl::OkStatus();
  }
  absl::Time time;
  std::string error;
  const bool ok = absl::ParseTime(absl::RFC3339_full, node.text, &time, &error);
  const absl::Time first = absl::FromCivil(absl::CivilSecond(1, 1, 1), absl::UTCTimeZone());
  const absl::Time end = absl::FromCivil(absl::CivilSecond(10000, 1, 1), absl::UTCTimeZone());
  if (!ok || time < first || time >= end)
    return Expected("a time such as 2026-11-20T14:05:00Z", node);
  ToProto(time, dynamic_cast<Timestamp*>(message));
  return absl::OkStatus();
}

std::string ScalarText(const Message& message, const FieldDescriptor* field, int index) {
  const auto get = [&](auto one, auto element) {
    return Read(message, field, index, one, element);
  };
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return absl::StrCat(get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32));
    case FieldDescriptor::CPPTYPE_INT64:
      return Int64Text(get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64), field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return ShortestReal(
          static_cast<double>(get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat)), 9);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return ShortestReal(get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble), 17);
    case FieldDescriptor::CPPTYPE_BOOL:
      return get(&Reflection::GetBool, &Reflection::GetRepeatedBool) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumText(get(&Reflection::GetEnum, &Reflection::GetRepeatedEnum));
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string text = get(&Reflection::GetString, &Reflection::GetRepeatedString);
      return QuoteYaml(field->type() == FieldDescriptor::TYPE_BYTES ? absl::Base64Escape(text)
                                                                    : text);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return "";
}

std::string ScalarMessageText(const Message& message) {
  if (const auto* duration = dynamic_cast<const Duration*>(&message)) {
    return FormatDuration({duration->seconds(), duration->nanos()});
  }
  const auto& timestamp = dynamic_cast<const Timestamp&>(message);
  const absl::Time time =
      absl::FromUnixSeconds(timestamp.seconds()) + absl::Nanoseconds(timestamp.nanos());
  return QuoteYaml(absl::FormatTime("%E4Y-%m-%dT%H:%M:%E*SZ", time, absl::UTCTimeZone()));
}

std::string QuoteYaml(absl::string_view text) {
  if (IsPlainSafe(text)) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", absl::string_view(&c, 1));
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppendFormat(&out, "\\x%02x", byte);
    } else {
      out += c;
    }
  }
  return Visible(out) + "\"";  // the same escapes
}

std::string EnumText(const EnumValueDescriptor* value) {
  if (value->number() == 0) return value->name();
  absl::string_view name = value->name();
  absl::ConsumePrefix(&name, CommonPrefix(value->type()));
  std::string out;
  bool start = true;
  for (const char c : name) {
    if (c != '_') out += start ? c : absl::ascii_tolower(static_cast<unsigned char>(c));
    start = c == '_';
  }
  return out;
}

const EnumValueDescriptor* FindEnumValue(const EnumDescriptor* type, absl::string_view text) {
  const absl::string_view prefix = CommonPrefix(type);
  const std::string wanted = Letters(text);
  for (int i = 0; i < type->value_count(); ++i) {
    const EnumValueDescriptor* value = type->value(i);
    if (value->name() == text) return value;
    if (value->number() == 0) continue;
    if (wanted == Letters(value->name()) ||
        wanted == Letters(absl::StripPrefix(value->name(), prefix)))
      return value;
  }
  return nullptr;
}

std::vector<std::string> EnumTexts(const EnumDescriptor* type) {
  std::vector<std::string> texts;
  for (int i = 0; i < type->value_count(); ++i) {
    if (type->value(i)->number() != 0) texts.push_back(EnumText(type->value(i)));
  }
  return texts;
}

}  // namespace berth
