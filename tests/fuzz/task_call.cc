// Names of tasks in metadata: whoever does not know the key speaks for no task.
#include "support/task_call.h"

#include <optional>
#include <string>

#include "core/base/check.h"
#include "server/access/task_caller.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {

void FuzzOne(absl::string_view input) {
  static const TaskKeys keys;
  const std::optional<TaskCall> call = ParseTaskCall(input);
  if (call.has_value()) BERTH_CHECK(ParseTaskCall(EncodeTaskCall(*call)) == call);
  Caller agent;
  agent.principal = {Principal::Kind::kNode, "n1", {}};
  agent.by_identity = true;
  agent.administrator = true;
  const Caller caller = TaskCallerFrom(agent, input, true, keys);
  BERTH_CHECK(!caller.refused.ok());
  BERTH_CHECK(!caller.task.has_value());
  BERTH_CHECK(!caller.administrator);
  BERTH_CHECK(caller.principal.name.empty());
}

}  // namespace berth::fuzz
