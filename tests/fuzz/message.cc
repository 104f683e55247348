#include "tests/fuzz/message.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>

namespace berth::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr size_t kEditBytes = 6;
constexpr size_t kMostEdits = 16;
constexpr size_t kMostBytes = size_t{1} << 20;  // edits may nest; a server accepts 4 MiB

const std::array<std::string, 40>& Strings() {
  static const auto* strings = new std::array<std::string, 40>{"",
                                                               "main",
                                                               "a",
                                                               "b",
                                                               "team",
                                                               "j1",
                                                               "j2",
                                                               "w",
                                                               "n0",
                                                               "n1",
                                                               "n2",
                                                               "gpu",
                                                               "mig",
                                                               "gpu-0",
                                                               "gpu-1",
                                                               "SIGTERM",
                                                               "SIGKILL",
                                                               "network",
                                                               "nvlink",
                                                               "rack",
                                                               "s0",
                                                               "s1",
                                                               "id-1",
                                                               "boot-1",
                                                               "1",
                                                               "2",
                                                               "10",
                                                               "root",
                                                               "x=y",
                                                               "n[0-9]",
                                                               "n.*",
                                                               "*",
                                                               "(",
                                                               "../x",
                                                               "spec",
                                                               "labels",
                                                               "1g.10gb",
                                                               "3g.40gb",
                                                               std::string(300, 'x'),
                                                               std::string(5000, 'y')};
  return *strings;
}

constexpr std::array<int64_t, 24> kNumbers = {0,
                                              1,
                                              2,
                                              3,
                                              4,
                                              7,
                                              8,
                                              15,
                                              16,
                                              64,
                                              100,
                                              1000,
                                              1001,
                                              10000,
                                              10001,
                                              65536,
                                              int64_t{1} << 30,
                                              int64_t{1} << 36,
                                              std::numeric_limits<int32_t>::max(),
                                              std::numeric_limits<int64_t>::max(),
                                              -1,
                                              -2,
                                              std::numeric_limits<int32_t>::min(),
                                              std::numeric_limits<int64_t>::min()};

constexpr std::array<double, 12> kReals = {0,
                                           0.5,
                                           1,
                                           2,
                                           0.001,
                                           0.25,
                                           -1,
                                           1e9,
                                           1e308,
                                           1e-308,
                                           std::numeric_limits<double>::infinity(),
                                           std::numeric_limits<double>::quiet_NaN()};

// Calls set(value) or add(value) of Reflection, depending on the field.
template <class Value, class Set, class Add>
void Put(Message* message, const FieldDescriptor* field, Value value, Set set, Add add) {
  const Reflection* reflection = message->GetReflection();
  if (field->is_repeated()) return (reflection->*add)(message, field, value);
  (reflection->*set)(message, field, value);
}

void SetScalar(Message* message, const FieldDescriptor* field, uint8_t choice) {
  const int64_t number = kNumbers[choice % kNumbers.size()];
  const double real = kReals[choice % kReals.size()];
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return Put(message, field, static_cast<int32_t>(number), &Reflection::SetInt32,
                 &Reflection::AddInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return Put(message, field, number, &Reflection::SetInt64, &Reflection::AddInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return Put(message, field, static_cast<uint32_t>(number), &Reflection::SetUInt32,
                 &Reflection::AddUInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return Put(message, field, static_cast<uint64_t>(number), &Reflection::SetUInt64,
                 &Reflection::AddUInt64);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Put(message, field, real, &Reflection::SetDouble, &Reflection::AddDouble);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Put(message, field, static_cast<float>(real), &Reflection::SetFloat,
                 &Reflection::AddFloat);
    case FieldDescriptor::CPPTYPE_BOOL:
      return Put(message, field, choice % 2 == 1, &Reflection::SetBool, &Reflection::AddBool);
    case FieldDescriptor::CPPTYPE_ENUM:  // one value too many: an enum of a newer version
      return Put(message, field, choice % (field->enum_type()->value_count() + 1),
                 &Reflection::SetEnumValue, &Reflection::AddEnumValue);
    case FieldDescriptor::CPPTYPE_STRING:
      return Put(message, field, Strings()[choice % Strings().size()], &Reflection::SetString,
                 &Reflection::AddString);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return;
  }
}

// A message in the field: the existing one, a new element, or an existing element.
Message* Enter(Message* message, const FieldDescriptor* field, uint8_t step) {
  const Reflection* reflection = message->GetReflection();
  if (!field->is_repeated()) return reflection->MutableMessage(message, field);
  const int size = reflection->FieldSize(*message, field);
  if (size == 0 || (step >= 192 && size < 100)) return reflection->AddMessage(message, field);
  return reflection->MutableRepeatedMessage(message, field, step % size);
}

// 4 bytes of a path, one for the operation at its end, and one for the value.
void Edit(absl::string_view edit, Message* message) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(edit[i]); };
  for (size_t i = 0; i < 4; ++i) {
    const int fields = message->GetDescriptor()->field_count();
    if (fields == 0) return;
    const FieldDescriptor* field = message->GetDescriptor()->field(byte(i) % fields);
    const bool last = field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE;
    if (byte(4) >= 224 && (last || i == 3))
      return message->GetReflection()->ClearField(message, field);
    if (last) return SetScalar(message, field, byte(5));
    message = Enter(message, field, byte(4));
  }
}

class Silent final : public google::protobuf::io::ErrorCollector {
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

}  // namespace

void ReadMessage(absl::string_view body, Message* message) {
  // Otherwise each string that is not UTF-8 is reported on standard error.
  static google::protobuf::LogHandler* const before = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(before);
  const size_t end = std::min(body.find('\0'), body.size());
  google::protobuf::TextFormat::Parser parser;
  Silent silent;
  parser.RecordErrorsTo(&silent);
  parser.SetRecursionLimit(50);
  parser.AllowPartialMessage(true);
  parser.ParseFromString(std::string(body.substr(0, end)), message);
  absl::string_view edits = body.substr(std::min(end + 1, body.size()));
  for (size_t i = 0; i < kMostEdits && edits.size() >= kEditBytes; ++i) {
    Edit(edits.substr(0, kEditBytes), message);
    edits.remove_prefix(kEditBytes);
  }
  std::string wire;
  const bool fits =
      message->ByteSizeLong() <= kMostBytes && message->SerializePartialToString(&wire);
  message->Clear();
  if (fits && !message->ParseFromString(wire)) message->Clear();
}

}  // namespace berth::fuzz
