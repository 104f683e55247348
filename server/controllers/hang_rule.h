// Whether a job hangs, from what its tasks told: docs/developers/progress.md, "The hang rule".
#ifndef BERTH_SERVER_CONTROLLERS_HANG_RULE_H_
#define BERTH_SERVER_CONTROLLERS_HANG_RULE_H_

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "core/model/event.h"
#include "core/model/job.h"

namespace berth {

// What one running attempt told about its progress.
struct ToldProgress {
  bool hung = false;  // none for as long as its watchdog allows
  Duration still = absl::ZeroDuration();
  int64_t step = -1;  // -1: it reports none
};

// Of the task's current attempt; nullptr: nothing yet.
using ToldLookup = absl::FunctionRef<const ToldProgress*(uint32_t task)>;

// The event that follows, if any: the job hangs now, or does not any more.
std::optional<TaskHung> JudgeHang(const Job& job, ToldLookup told);

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_HANG_RULE_H_
