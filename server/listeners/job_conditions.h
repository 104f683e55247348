// Conditions of jobs (v1.JobCondition): something is wrong with how a job runs, although each
// single step is valid. Two follow from the state alone. Restarts are counted as their events
// become durable, starting when this process started.
#ifndef BERTH_SERVER_LISTENERS_JOB_CONDITIONS_H_
#define BERTH_SERVER_LISTENERS_JOB_CONDITIONS_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "berth/v1/job.pb.h"
#include "core/model/cluster_state.h"
#include "server/loop/turn.h"
#include "server/reads/read_view.h"

namespace berth {

// Running tasks, if each of them was restarted alone and none of the gang's original starts
// remains; otherwise 0. For jobs of two tasks or more. O(1) for most jobs, O(tasks) at most.
int32_t RestartedPiecemeal(const Job& job);

// Starts of the job that were refused in a row, if they are kRepeatedlyRefused or more and the job
// is at the head of its queue; otherwise 0.
inline constexpr int32_t kRepeatedlyRefused = 3;
int32_t RefusedAtHead(const ClusterState& state, const Job& job);

// Counts restarts. The restart of a gang counts once, however many tasks it has; so does the
// restart of a single task. Refused starts do not count. Thread-safe.
class RestartWatch final : public DurableListener {
 public:
  static constexpr int32_t kOften = 10;  // more than this in kWindow
  static constexpr Duration kWindow = absl::Minutes(1);

  void OnTurnDurable(uint64_t revision, std::shared_ptr<const std::vector<Event>> events,
                     std::shared_ptr<const std::string> turn) override;
  // Restarts in the last minute if they exceed kOften; otherwise 0. At most kMostKept.
  int32_t Often(JobId job, Time now) const;
  int64_t JobsOften(Time now) const;

 private:
  static constexpr size_t kMostKept = 1000;  // restarts of one job
  struct Recent {
    std::deque<Time> times;
    absl::flat_hash_set<uint32_t> refused;  // tasks whose latest start was refused
  };
  struct InTurn;
  void Note(JobId job, int32_t restarts, Time time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Sweep(Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static int32_t CountAt(const Recent& recent, Time now);

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<JobId, Recent> jobs_ ABSL_GUARDED_BY(mutex_);
  size_t swept_at_ ABSL_GUARDED_BY(mutex_) = 1024;
};

// All conditions of the job that hold now. `restarts`: its RestartWatch::Often.
void RenderConditions(const ClusterState& state, const Job& job, int32_t restarts,
                      v1::JobStatus* out);

// How many jobs have each condition, by kind. Examines all jobs, in steps.
std::array<int64_t, v1::JobCondition::Kind_ARRAYSIZE> CountConditions(ReadView& view,
                                                                      const RestartWatch& restarts,
                                                                      Time now);

}  // namespace berth

#endif  // BERTH_SERVER_LISTENERS_JOB_CONDITIONS_H_
