#include "offline/sim/output.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "offline/sim/expectation_text.h"
#include "support/proto_json.h"
#include "support/quantity.h"
#include "support/visible_message.h"
#include "support/yaml_proto.h"
#include "support/yaml_proto_scalar.h"

namespace berth {
namespace {

std::string Seconds(const google::protobuf::Duration& duration) {
  return FormatDuration({duration.seconds(), duration.nanos()});
}

template <class Enum>
std::string Word(const google::protobuf::EnumDescriptor* type, Enum value) {
  return EnumText(type->FindValueByNumber(value));
}

void AppendCycles(const sim::v1::ScenarioResult& result, std::string* text) {
  for (const sim::v1::CycleResult& cycle : result.cycles()) {
    absl::StrAppend(text, "cycle ", cycle.number(), " at ", Seconds(cycle.time()),
                    cycle.exhausted() ? " (cut)" : "", "\n");
    for (const sim::v1::Decision& decision : cycle.decisions()) {
      absl::StrAppend(text, "  ", decision.text().empty() ? FlowText(decision) : decision.text(),
                      "\n");
    }
  }
}

void AppendJobs(const sim::v1::ScenarioResult& result, std::string* text) {
  for (const sim::v1::JobResult& job : result.jobs()) {
    absl::StrAppend(text, "job ", job.name(), " ", Word(v1::JobState_descriptor(), job.state()));
    for (const sim::v1::WaitReason& reason : job.reasons()) {
      absl::StrAppend(text, "  ", FlowText(reason));
    }
    absl::StrAppend(text, "\n");
    for (const sim::v1::TaskResult& task : result.tasks()) {
      if (task.job() != job.name()) continue;
      absl::StrAppend(text, "  ", task.task(), " ", Word(v1::TaskState_descriptor(), task.state()),
                      " ", task.node(), " ", absl::StrJoin(task.devices(), ","), "\n");
    }
  }
}

std::string Table(const sim::v1::ScenarioResult& result) {
  std::string text = absl::StrCat("scenario ", result.name(), "\n");
  AppendCycles(result, &text);
  AppendJobs(result, &text);
  for (const auto& queue : result.queues()) absl::StrAppend(&text, "queue ", FlowText(queue), "\n");
  for (const auto& node : result.nodes()) absl::StrAppend(&text, "node ", FlowText(node), "\n");
  for (const std::string& line : result.mismatches()) absl::StrAppend(&text, "! ", line, "\n");
  return text;
}

}  // namespace

std::string PrintedMessage(const google::protobuf::Message& message, absl::string_view format) {
  if (format == "yaml") return absl::StrCat("---\n", WriteYaml(message, {.numbers = true}));
  return absl::StrCat(WriteJson(message, {.indented = true}), "\n");
}

std::string PrintedFigures(const google::protobuf::Message& message, absl::string_view format) {
  if (format == "yaml") return PrintedMessage(message, format);
  return absl::StrCat(WriteJson(message, {.indented = true, .zeros = true}), "\n");
}

std::string Printed(const sim::v1::ScenarioResult& result, absl::string_view format) {
  return format == "table" ? Table(VisibleCopy(result)) : PrintedMessage(result, format);
}

}  // namespace berth
