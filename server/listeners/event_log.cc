#include "server/listeners/event_log.h"

#include <algorithm>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "server/convert/change.h"
#include "server/convert/values.h"
#include "storage/codec.h"
#include "support/log.h"

namespace berth {
namespace {

// Registrations are logged where they are decided, with the agent's details.
bool IsOfNode(const Event& event) {
  return std::holds_alternative<NodeSilenced>(event.body) ||
         std::holds_alternative<NodeFenced>(event.body) ||
         std::holds_alternative<NodeRefused>(event.body) ||
         std::holds_alternative<NodeDeleted>(event.body);
}

// JOB_CHANGED -> "job changed"
std::string Words(v1::ChangeEvent::Type type) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(v1::ChangeEvent::Type_Name(type)), {{"_", " "}});
}

void LogChange(uint64_t revision, const v1::ChangeEvent& change) {
  if (change.type() == v1::ChangeEvent::TASK_CHANGED) {
    LogDebug(Words(change.type()),
             {{"job", change.job()},
              {"task", change.task()},
              {"attempt", change.attempt()},
              {"state", ShortName(v1::TaskState_Name(change.task_state()), "TASK_")},
              {"node", change.node()},
              {"message", change.message()},
              {"revision", revision}});
  } else if (!change.job().empty()) {
    LogDebug(Words(change.type()),
             {{"job", change.job()},
              {"uid", change.job_uid()},
              {"state", ShortName(v1::JobState_Name(change.job_state()), "JOB_")},
              {"message", change.message()},
              {"revision", revision}});
  } else {
    const bool registered = change.type() == v1::ChangeEvent::NODE_REGISTERED;
    LogLine(registered ? LogLevel::kDebug : LogLevel::kInfo, Words(change.type()),
            {{"node", change.node()},
             {"state", ShortName(v1::NodeState_Name(change.node_state()), "NODE_")},
             {"message", change.message()},
             {"revision", revision}});
  }
}

v1::WatchRequest Wanted(bool jobs) {
  v1::WatchRequest request;
  request.set_no_jobs(!jobs);
  request.set_nodes(true);
  return request;
}

}  // namespace

void EventLog::OnTurnDurable(uint64_t revision, std::shared_ptr<const std::vector<Event>> events,
                             std::shared_ptr<const std::string> turn) {
  const bool debug = LogEnabled(LogLevel::kDebug);
  if (!debug && std::none_of(events->begin(), events->end(), IsOfNode)) return;
  const absl::StatusOr<store::v1::LogTurn> parsed = ParseTurn(*turn);
  if (!parsed.ok()) return;  // the store would have refused it
  google::protobuf::RepeatedPtrField<v1::ChangeEvent> changes;
  RenderChanges(*parsed, ChangeFilter(Wanted(debug)), &changes);
  for (const v1::ChangeEvent& change : changes) LogChange(revision, change);
}

}  // namespace berth
