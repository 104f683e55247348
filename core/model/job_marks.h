// What is recorded about how a job runs: its checkpoint, a hang, a pause. Parts of JobStatus.
#ifndef BERTH_CORE_MODEL_JOB_MARKS_H_
#define BERTH_CORE_MODEL_JOB_MARKS_H_

#include <cstdint>
#include <string>

#include "core/model/ids.h"

namespace berth {

enum class CheckpointPlace : uint8_t { kUnknown, kLocal, kPeer, kShared };

// The latest checkpoint that a task of its gang reported.
struct Checkpoint {
  Time time = absl::InfinitePast();  // of the report; never: there is none
  int64_t step = 0;
  int64_t bytes = 0;  // 0 = unknown
  CheckpointPlace place = CheckpointPlace::kUnknown;
  bool operator==(const Checkpoint&) const = default;
};

// One of its tasks, or its gang, shows no progress (core/engine/lifecycle/hang.cc).
struct Hang {
  Time time = absl::InfinitePast();  // when it was found; never: it does not hang
  uint32_t task = 0;                 // of a gang: the one that has come least far
  uint32_t attempt = 0;              // of that task
  Duration still = absl::ZeroDuration();
  int64_t step = -1;  // its latest; -1 = it reports none
  bool operator==(const Hang&) const = default;
};

// How the job is paused (core/engine/lifecycle/pause.cc).
struct Pause {
  bool wanted = false;  // `suspended` by freezing its tasks where they are, not by stopping them
  // Its clock stands still since then, because tasks are frozen or about to be; never: it goes on.
  Time since = absl::InfinitePast();
  Time until = absl::InfiniteFuture();    // then it is stopped
  Duration total = absl::ZeroDuration();  // of earlier pauses since its latest start
  Time resumed = absl::InfinitePast();    // when the latest of those ended
  // The job for which it was paused, and why, for people; 0: its user paused it.
  JobId beneficiary = {};
  std::string detail = {};
  bool operator==(const Pause&) const = default;
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_JOB_MARKS_H_
