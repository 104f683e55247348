// What berth debug bundle takes out.
#include "clients/cli/debug_bundle.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"

namespace berth {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr char kSecret[] = "hunter2";

// Sets every text of the message and of all messages in it, to a depth at which none repeats.
void FillTexts(Message* message, int depth) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    const bool text = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    if (text && field->is_repeated()) {
      reflection.AddString(message, field, kSecret);
    } else if (text) {
      reflection.SetString(message, field, kSecret);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && depth > 0) {
      if (field->real_containing_oneof() != nullptr) continue;
      FillTexts(field->is_repeated() ? reflection.AddMessage(message, field)
                                     : reflection.MutableMessage(message, field),
                depth - 1);
    }
  }
}

// Names of the fields that still have the text.
void TextsIn(const Message& message, std::string* names) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      absl::StrAppend(names, field->containing_type()->name(), ".", field->name(), " ");
    } else if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      continue;
    } else if (field->is_repeated()) {
      for (int i = 0; i < reflection.FieldSize(message, field); ++i)
        TextsIn(reflection.GetRepeatedMessage(message, field, i), names);
    } else {
      TextsIn(reflection.GetMessage(message, field), names);
    }
  }
}

TEST_CASE("only names that scheduling needs stay of what users wrote") {
  v1::Job job;
  job.set_name("train");
  FillTexts(job.mutable_spec(), 4);
  REQUIRE(job.spec().groups(0).command(0) == kSecret);
  REQUIRE(job.spec().labels().at(kSecret) == kSecret);
  job.mutable_status()->set_message("worker-0 exited with 1 on n1");
  job.mutable_status()->set_cancel_reason(kSecret);
  HideUserTexts(&job);
  CHECK(job.status().cancel_reason().empty());
  std::string left;
  TextsIn(job.spec(), &left);
  for (const char* hidden :
       {"command", "args", "env", "label", "annotation", "image", "path", "value", "auth", "script",
        "working_dir", "run_as", "host_names", "uuid"}) {
    INFO(left);
    CHECK(left.find(hidden) == std::string::npos);
  }
  CHECK(job.name() == "train");
  CHECK(job.spec().queue() == kSecret);  // names of queues stay
  CHECK(job.status().message() == "worker-0 exited with 1 on n1");
}

TEST_CASE("numbers of a job stay") {
  v1::Job job;
  v1::TaskGroup& group = *job.mutable_spec()->add_groups();
  group.set_replicas(4);
  group.mutable_resources()->set_cpu_millis(500);
  (*group.mutable_resources()->mutable_extended())["licenses"] = 2;
  job.mutable_status()->set_retries(1);
  const v1::Job before = job;
  HideUserTexts(&job);
  CHECK(job.SerializeAsString() == before.SerializeAsString());
}

TEST_CASE("values of configuration keys that sound like secrets are hidden, and paths are not") {
  CHECK(WithoutSecrets("server: a:7070\njoin:\n  tokenFile: /etc/berth/token\n  token: abc\n") ==
        "server: a:7070\njoin:\n  tokenFile: /etc/berth/token\n  token: (hidden)\n");
  CHECK(WithoutSecrets("Password: x\nclientSecret:\n  - y") ==
        "Password: (hidden)\nclientSecret:\n  - y");
  CHECK(WithoutSecrets("") == "");
}

}  // namespace
}  // namespace berth
