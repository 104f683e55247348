#include "storage/codec_common.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include <limits>

#include "core/base/fields.h"
#include "storage/keys.h"

namespace berth::codec {
namespace {

// Whoever adds a field encodes and decodes it below, and then changes the number.
static_assert(kFields<RequestMix> == 6);
static_assert(kFields<RequestType> == 3);
static_assert(kFields<Request> == 5);
static_assert(kFields<NamedAmount> == 2);

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::RepeatedField;
using google::protobuf::RepeatedPtrField;

constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max();
constexpr int64_t kMinusInfinite = std::numeric_limits<int64_t>::min();
constexpr int32_t kNanosPerSecond = 1'000'000'000;

// Unknown fields of the message and of its single sub-messages, as bytes that merge when appended
// to the message.
std::string UnknownFields(const Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::string fields;
  reflection.GetUnknownFields(message).SerializeToString(&fields);
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field.is_repeated()) continue;
    if (field.message_type()->file() != type.file() || !reflection.HasField(message, &field)) {
      continue;
    }
    const std::string inner = UnknownFields(reflection.GetMessage(message, &field));
    if (inner.empty()) continue;
    google::protobuf::UnknownFieldSet wrapped;
    wrapped.AddLengthDelimited(field.number(), inner);
    std::string bytes;
    wrapped.SerializeToString(&bytes);
    fields += bytes;
  }
  return fields;
}

}  // namespace

void SetTime(Time time, google::protobuf::Timestamp* out) {
  if (time == absl::InfiniteFuture()) return out->set_seconds(kInfinite);
  if (time == absl::InfinitePast()) return out->set_seconds(kMinusInfinite);
  const int64_t seconds = absl::ToUnixSeconds(time);
  out->set_seconds(seconds);
  out->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
}

void SetDuration(Duration duration, google::protobuf::Duration* out) {
  if (duration == absl::InfiniteDuration()) return out->set_seconds(kInfinite);
  if (duration == -absl::InfiniteDuration()) return out->set_seconds(kMinusInfinite);
  Duration rest;
  out->set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  out->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

void SetLabels(const std::map<std::string, std::string>& labels, RepeatedPtrField<pb::Label>* out) {
  for (const auto& [key, value] : labels) {
    pb::Label* label = out->Add();
    label->set_key(key);
    label->set_value(value);
  }
}

std::map<std::string, std::string> GetLabels(const RepeatedPtrField<pb::Label>& labels) {
  std::map<std::string, std::string> result;
  for (const pb::Label& label : labels) {
    result.emplace_hint(result.end(), label.key(), label.value());
  }
  return result;
}

void SetAmounts(const std::vector<NamedAmount>& amounts, RepeatedPtrField<pb::Amount>* out) {
  for (const NamedAmount& amount : amounts) {
    pb::Amount* message = out->Add();
    message->set_name(amount.name);
    message->set_amount(amount.amount);
  }
}

std::vector<NamedAmount> GetAmounts(const RepeatedPtrField<pb::Amount>& amounts) {
  std::vector<NamedAmount> result;
  result.reserve(static_cast<size_t>(amounts.size()));
  for (const pb::Amount& amount : amounts) {
    result.push_back({.name = amount.name(), .amount = amount.amount()});
  }
  return result;
}

void SetStrings(const std::vector<std::string>& strings, RepeatedPtrField<std::string>* out) {
  for (const std::string& text : strings) *out->Add() = text;
}

std::vector<std::string> GetStrings(const RepeatedPtrField<std::string>& strings) {
  return {strings.begin(), strings.end()};
}

void SetRequestMix(const RequestMix& mix, pb::RequestMix* out) {
  SetStrings(mix.models, out->mutable_models());
  for (const RequestType& type : mix.types) {
    pb::RequestType* message = out->add_types();
    message->set_devices(type.request.devices);
    message->set_share(type.request.share);
    message->set_cpu_millis(type.request.cpu_millis);
    message->set_models(type.request.models);
    message->set_weight(type.weight);
    message->set_value(type.value);
  }
  out->set_cpu_millis_per_device(mix.cpu_millis_per_device);
  out->set_priced(mix.priced);
  out->set_mib_per_core(mix.mib_per_core);
  out->set_score(static_cast<uint32_t>(mix.score));
}

RequestMix GetRequestMix(const pb::RequestMix& message) {
  RequestMix mix{.models = GetStrings(message.models()),
                 .types = {},
                 .cpu_millis_per_device = message.cpu_millis_per_device(),
                 .priced = message.priced(),
                 .mib_per_core = message.mib_per_core(),
                 .score = static_cast<MixScore>(std::min<uint32_t>(message.score(), UINT8_MAX))};
  mix.types.reserve(static_cast<size_t>(message.types_size()));
  for (const pb::RequestType& type : message.types()) {
    mix.types.push_back({.request = {.devices = type.devices(),
                                     .share = type.share(),
                                     .cpu_millis = type.cpu_millis(),
                                     .models = type.models()},
                         .weight = type.weight(),
                         .value = type.value()});
  }
  return mix;
}

void SetDevices(const DeviceSet& devices, RepeatedField<uint64_t>* out) {
  size_t words = devices.bits.size();
  while (words > 0 && devices.bits[words - 1] == 0) --words;
  for (size_t i = 0; i < words; ++i) out->Add(devices.bits[i]);
}

Time Reader::GetTime(bool is_set, const google::protobuf::Timestamp& time, Time absent,
                     absl::string_view field) {
  if (!is_set) return absent;
  if (time.seconds() == kInfinite) return absl::InfiniteFuture();
  if (time.seconds() == kMinusInfinite) return absl::InfinitePast();
  if (time.nanos() < 0 || time.nanos() >= kNanosPerSecond) Refuse(field, time.nanos());
  return absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos());
}

Duration Reader::GetDuration(bool is_set, const google::protobuf::Duration& duration,
                             Duration absent, absl::string_view field) {
  if (!is_set) return absent;
  if (duration.seconds() == kInfinite) return absl::InfiniteDuration();
  if (duration.seconds() == kMinusInfinite) return -absl::InfiniteDuration();
  if (duration.nanos() <= -kNanosPerSecond || duration.nanos() >= kNanosPerSecond) {
    Refuse(field, duration.nanos());
  }
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

DeviceSet Reader::GetDevices(const RepeatedField<uint64_t>& words, absl::string_view field) {
  DeviceSet devices;
  if (static_cast<size_t>(words.size()) > devices.bits.size()) {
    Refuse(absl::StrCat(field, " has ", words.size(), " words"));
    return devices;
  }
  for (int i = 0; i < words.size(); ++i) devices.bits[static_cast<size_t>(i)] = words.Get(i);
  return devices;
}

void Reader::Refuse(absl::string_view field, int64_t value) {
  Refuse(absl::StrCat("unknown ", field, " ", value));
}

void Reader::Refuse(std::string reason) {
  if (reason_.empty()) reason_ = std::move(reason);
}

absl::Status ParseMessage(absl::string_view value, Message* message, std::string* unknown) {
  if (!message->ParseFromArray(value.data(), static_cast<int>(value.size()))) {
    return absl::DataLossError("not a valid record");
  }
  if (unknown != nullptr) *unknown = UnknownFields(*message);
  return absl::OkStatus();
}

absl::Status Verdict(const Reader& reader, RecordKind kind, absl::string_view key) {
  return NameRecord(reader.status(), kind, key);
}

}  // namespace berth::codec
