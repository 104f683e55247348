// Whatever a server answers, nothing in it reaches the terminal that could move a cursor, begin a
// line of its own, or turn text round.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// ESC, BEL, CSI as C1, a new line with a lie, right-to-left override, isolate, a paragraph.
constexpr char kNasty[] =
    "x\x1b[2J\x07\xc2\x9b"
    "31m\nFORGED\r\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa9";
constexpr int kDepth = 7;

void Fill(Message* message, int depth);

void FillOne(Message* message, const FieldDescriptor* field, int depth) {
  const auto* r = message->GetReflection();
  const bool many = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      if (field->type() == FieldDescriptor::TYPE_BYTES) return;
      // A list that never ends, and a queue that is its own parent, would show nothing.
      if (field->name() == "next_page_token" || field->name() == "parent") return;
      return many ? r->AddString(message, field, kNasty) : r->SetString(message, field, kNasty);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (depth == 0) return;
      return Fill(many ? r->AddMessage(message, field) : r->MutableMessage(message, field),
                  depth - 1);
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto* value = field->enum_type()->value(field->enum_type()->value_count() - 1);
      return many ? r->AddEnum(message, field, value) : r->SetEnum(message, field, value);
    }
    case FieldDescriptor::CPPTYPE_INT32:
      return many ? r->AddInt32(message, field, 1) : r->SetInt32(message, field, 1);
    case FieldDescriptor::CPPTYPE_INT64:
      return many ? r->AddInt64(message, field, 1) : r->SetInt64(message, field, 1);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return many ? r->AddDouble(message, field, 1) : r->SetDouble(message, field, 1);
    default:
      return;  // booleans and numbers that are in no text
  }
}

// Every field of every message inside; of a oneof the last.
void Fill(Message* message, int depth) {
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    FillOne(message, message->GetDescriptor()->field(i), depth);
  }
}

template <class Answer>
Answer Filled() {
  Answer answer;
  Fill(&answer, kDepth);
  return answer;
}

void CheckHarmless(const std::string& text, bool lines) {
  for (const char* bad :
       {"\x1b", "\x07", "\r", "\xc2\x9b", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x80\xa9"}) {
    CHECK(text.find(bad) == std::string::npos);
  }
  if (lines) CHECK(text.find("\nFORGED") == std::string::npos);
}

void Answers(Script& script) {
  script.Answer("ListJobs", Filled<v1::ListJobsResponse>());
  script.Answer("GetJob", Filled<v1::Job>());
  script.Answer("ListTasks", Filled<v1::ListTasksResponse>());
  script.Answer("CancelJob", Filled<v1::Job>());
  script.Answer("ListNodes", Filled<v1::ListNodesResponse>());
  script.Answer("GetNode", Filled<v1::Node>());
  script.Answer("ListQueues", Filled<v1::ListQueuesResponse>());
  script.Answer("GetQueue", Filled<v1::Queue>());
  script.Answer("GetClusterInfo", Filled<v1::ClusterInfo>());
  script.Answer("ListHyperNodes", Filled<v1::ListHyperNodesResponse>());
  script.Answer("ExplainJob", Filled<v1::ExplainJobResponse>());
  script.Answer("EstimateJob", Filled<v1::EstimateJobResponse>());
  script.Answer("ListQueueShares", Filled<v1::ListQueueSharesResponse>());
  script.Answer("GetHyperNode", Filled<v1::HyperNode>());
}

const std::vector<std::vector<std::string>> kCommands = {{"job", "list"},
                                                         {"job", "get", "x"},
                                                         {"job", "describe", "x"},
                                                         {"job", "explain", "x"},
                                                         {"job", "estimate", "x"},
                                                         {"queue", "shares"},
                                                         {"topology", "show"},
                                                         {"job", "tasks", "x"},
                                                         {"job", "cancel", "x"},
                                                         {"node", "list"},
                                                         {"node", "get", "x"},
                                                         {"node", "describe", "x"},
                                                         {"queue", "list"},
                                                         {"queue", "get", "x"},
                                                         {"queue", "describe", "x"},
                                                         {"cluster", "info"},
                                                         {"hypernode", "list"},
                                                         {"hypernode", "get", "x"},
                                                         {"hypernode", "describe", "x"}};

}  // namespace

TEST_CASE("nothing that a server answers reaches a terminal raw") {
  Cli cli;
  Answers(cli.script);
  for (const char* format : {"table", "wide", "name", "json", "yaml"}) {
    for (const std::vector<std::string>& command : kCommands) {
      std::vector<std::string> line = command;
      line.insert(line.end(), {"-o", format});
      INFO(command[0] << " " << command[1] << " -o " << format);
      cli.Run(line);
      CHECK_FALSE((cli.out() + cli.err()).empty());
      CheckHarmless(cli.out(), true);
      CheckHarmless(cli.err(), true);
    }
  }
}

TEST_CASE("errors of a server reach a terminal as text of one line") {
  Cli cli;
  cli.script.Answer("GetJob", absl::NotFoundError(kNasty));
  CHECK(cli.Run({"job", "get", "x"}) == 3);
  CheckHarmless(cli.err(), true);
  cli.script.Answer("ListNodes", ViolationsError(absl::StatusCode::kInvalidArgument,
                                                 {{std::string("f") + kNasty, kNasty}}));
  cli.Run({"node", "list"});
  CHECK_FALSE(cli.err().empty());
  CheckHarmless(cli.err(), true);
}

}  // namespace berth
