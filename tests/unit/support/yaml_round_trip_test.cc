// Property: ReadYaml reads the output of WriteYaml back to an equal message, for any message of the
// API.
#include <catch2/catch.hpp>

#include "berth/config/v1/config.pb.h"
#include "berth/v1/agent.pb.h"
#include "berth/v1/cluster.pb.h"
#include "berth/v1/hypernode.pb.h"
#include "berth/v1/job.pb.h"
#include "berth/v1/node.pb.h"
#include "berth/v1/queue.pb.h"
#include "berth/v1/types.pb.h"
#include "berth/v1/watch.pb.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "google/protobuf/util/message_differencer.h"
#include "support/random.h"
#include "support/yaml_proto.h"

namespace berth {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Fills messages at random: limits of ranges, unusual texts, deep and empty sub-messages.
class Filler {
 public:
  explicit Filler(uint64_t seed) : random_(seed) {}

  void Fill(Message* message, int depth = 0) {
    if (auto* duration = dynamic_cast<google::protobuf::Duration*>(message)) {
      duration->set_seconds(
          static_cast<int64_t>(random_.Below(315'576'000'000) >> random_.Below(38)));
      duration->set_nanos(Nanos());
      return;
    }
    if (auto* timestamp = dynamic_cast<google::protobuf::Timestamp*>(message)) {
      timestamp->set_seconds(static_cast<int64_t>(random_.Below(315'537'897'600)) - 62'135'596'800);
      timestamp->set_nanos(Nanos());
      return;
    }
    const google::protobuf::Descriptor* type = message->GetDescriptor();
    if (random_.Below(4) == 0 && FillWithKnownKinds(message)) return;
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor* field = type->field(i);
      if (random_.Below(2) == 0 || TakenByOneof(*message, field)) continue;
      const int count = field->is_repeated() ? static_cast<int>(random_.Below(4)) : 1;
      for (int j = 0; j < count; ++j) FillField(message, field, depth);
    }
  }

 private:
  int32_t Nanos() {
    const int32_t kinds[] = {0, 500'000'000, 1'000,
                             static_cast<int32_t>(random_.Below(1'000'000'000))};
    return kinds[random_.Below(4)];
  }

  // Devices that can be written as keys.
  bool FillWithKnownKinds(Message* message) {
    if (auto* list = dynamic_cast<v1::ResourceList*>(message)) {
      (*list->mutable_counts())["gpu"] = static_cast<double>(random_.Below(90)) / 10;
      (*list->mutable_counts())["nic"] = -1;
      return true;
    }
    auto* request = dynamic_cast<v1::ResourceRequest*>(message);
    if (request == nullptr) return false;
    for (const char* kind : {"nic", "gpu"}) {
      v1::DeviceRequest& device = *request->add_devices();
      device.set_kind(kind);
      device.set_count(static_cast<int32_t>(random_.Below(3)));
      if (random_.Below(2) == 0) device.add_model("H100");
    }
    return true;
  }

  static bool TakenByOneof(const Message& message, const FieldDescriptor* field) {
    const auto* oneof = field->real_containing_oneof();
    return oneof != nullptr && message.GetReflection()->HasOneof(message, oneof);
  }

  std::string Text() {
    static const char* const kTexts[] = {
        "",           "a",    "true",   "null",       "~",     "1",      "1.5", "0x1f",
        "- a",        "a: b", "#c",     " lead",      "tail ", "a\nb\n", "\t",  "\"q\\",
        "--flag",     "---",  "[x]",    "{x}",        "\x01",  "\x7f",   "a,b", "é\u2028ü\u0085",
        "yes",        "*a",   "&a",     "!tag",       "%",     "@",      "`",   "?",
        ":",          "a:",   "$X/b=c", "2026-11-20", "1e3",   ".inf",   "...", "\r\n",
        "\U0001F600", "<<",   "gpu",    "npu",        "0o7",   "12:30",  "-",   "--",
        "+1",         "_"};
    return kTexts[random_.Below(std::size(kTexts))];
  }

  uint64_t Bits() { return random_.Next() >> random_.Below(64); }

  double Real() {
    const double kinds[] = {
        0.0, 0.2, -1.5, 1e300, 5e-324, random_.Unit(), static_cast<double>(Bits())};
    return kinds[random_.Below(std::size(kinds))];
  }

  void FillField(Message* message, const FieldDescriptor* field, int depth) {
    const Reflection* r = message->GetReflection();
    const bool many = field->is_repeated();
    const auto sign = random_.Below(2) == 0 && !field->options().HasExtension(v1::quantity);
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32: {
        const auto v = static_cast<int32_t>(static_cast<uint32_t>(Bits()));
        return many ? r->AddInt32(message, field, v) : r->SetInt32(message, field, v);
      }
      case FieldDescriptor::CPPTYPE_INT64: {
        const auto magnitude = static_cast<int64_t>(Bits() >> 1);
        const int64_t v = sign ? -magnitude : magnitude;
        return many ? r->AddInt64(message, field, v) : r->SetInt64(message, field, v);
      }
      case FieldDescriptor::CPPTYPE_UINT32: {
        const auto v = static_cast<uint32_t>(Bits());
        return many ? r->AddUInt32(message, field, v) : r->SetUInt32(message, field, v);
      }
      case FieldDescriptor::CPPTYPE_UINT64:
        return many ? r->AddUInt64(message, field, Bits()) : r->SetUInt64(message, field, Bits());
      case FieldDescriptor::CPPTYPE_FLOAT: {
        const auto v = static_cast<float>(random_.Unit());
        return many ? r->AddFloat(message, field, v) : r->SetFloat(message, field, v);
      }
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return many ? r->AddDouble(message, field, Real()) : r->SetDouble(message, field, Real());
      case FieldDescriptor::CPPTYPE_BOOL:
        return many ? r->AddBool(message, field, sign) : r->SetBool(message, field, sign);
      case FieldDescriptor::CPPTYPE_ENUM: {
        const auto count = static_cast<uint64_t>(field->enum_type()->value_count());
        const auto* v = field->enum_type()->value(static_cast<int>(random_.Below(count)));
        return many ? r->AddEnum(message, field, v) : r->SetEnum(message, field, v);
      }
      case FieldDescriptor::CPPTYPE_STRING: {
        const bool bytes = field->type() == FieldDescriptor::TYPE_BYTES;
        const std::string v = bytes ? std::string("\0\xff\x80z", 4) : Text();
        return many ? r->AddString(message, field, v) : r->SetString(message, field, v);
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (field->is_map()) return FillEntry(message, field, depth);
        if (depth > 4) return;
        return Fill(many ? r->AddMessage(message, field) : r->MutableMessage(message, field),
                    depth + 1);
    }
  }

  // Keys of a map are distinct: entries with the same key would be merged by reading.
  void FillEntry(Message* message, const FieldDescriptor* field, int depth) {
    const Reflection* r = message->GetReflection();
    Message* entry = r->AddMessage(message, field);
    const FieldDescriptor* key = field->message_type()->map_key();
    REQUIRE(key->cpp_type() == FieldDescriptor::CPPTYPE_STRING);
    entry->GetReflection()->SetString(entry, key,
                                      Text() + std::to_string(r->FieldSize(*message, field)));
    FillField(entry, field->message_type()->map_value(), depth);
  }

  Random random_;
};

template <class T>
void CheckRoundTrips() {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    T message;
    Filler(seed).Fill(&message);
    const std::string text = WriteYaml(message);
    T back;
    const absl::Status status = ReadYaml(text, "f", &back);
    INFO(text << "\n" << status);
    REQUIRE(status.ok());
    REQUIRE(google::protobuf::util::MessageDifferencer::Equals(message, back));
    REQUIRE(WriteYaml(back) == text);
  }
}

TEST_CASE("written YAML reads back: jobs") { CheckRoundTrips<v1::Job>(); }
TEST_CASE("written YAML reads back: queues") { CheckRoundTrips<v1::Queue>(); }
TEST_CASE("written YAML reads back: nodes") { CheckRoundTrips<v1::Node>(); }
TEST_CASE("written YAML reads back: HyperNodes") { CheckRoundTrips<v1::HyperNode>(); }
TEST_CASE("written YAML reads back: cluster") { CheckRoundTrips<v1::ClusterInfo>(); }
TEST_CASE("written YAML reads back: watch") { CheckRoundTrips<v1::WatchResponse>(); }
TEST_CASE("written YAML reads back: agent messages") { CheckRoundTrips<v1::AgentMessage>(); }
TEST_CASE("written YAML reads back: configuration") {
  CheckRoundTrips<config::v1::Server>();
  CheckRoundTrips<config::v1::Agent>();
  CheckRoundTrips<config::v1::Simulation>();
}

TEST_CASE("written YAML looks like YAML that people write") {
  v1::JobSpec spec;
  const char* text =
      "{queue: a, walltime: 72h, labels: {z: 1, a: x}, groups: [{name: w, command: [a, b c],"
      "resources: {cpu: 0.5, memory: 1Ti, gpu: 8, nic: {count: 2, model: x}},"
      "policies: [{event: NODE_LOST, action: restart-group}]}]}";
  REQUIRE(ReadYaml(text, "f", &spec).ok());
  CHECK(WriteYaml(spec) == R"(queue: a
walltime: 72h
groups:
- name: w
  resources:
    cpu: 500m
    memory: 1Ti
    gpu: 8
    nic:
      count: 2
      model: [x]
  command: [a, "b c"]
  policies:
  - event: NodeLost
    action: RestartGroup
labels:
  a: x
  z: "1"
)");
  CHECK(WriteYaml(v1::JobSpec()) == "{}\n");
}

}  // namespace
}  // namespace berth
