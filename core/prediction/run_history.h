// RunHistory: the finished runs from which run times are predicted.
//
// It keeps the last 60 runs of each user, the last 50 of each requested walltime, and the last 50
// of all; at most 65,536 in total, dropping the oldest first. It is a fact of the cluster's state:
// each run comes with an event (JobRunRecorded), and keeps its number until it is dropped.
//
// The method is a weighted distribution of past runs, similar to D. Tsafrir, Y. Etsion, D. G.
// Feitelson, "Backfilling using system-generated predictions rather than user runtime estimates"
// (IEEE TPDS 18, 2007), which uses the mean of the user's last two runs.
#ifndef BERTH_CORE_PREDICTION_RUN_HISTORY_H_
#define BERTH_CORE_PREDICTION_RUN_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/model/ids.h"
#include "core/prediction/run_prediction.h"

namespace berth {

struct FinishedRun {
  std::string user;
  RunRequest request;
  int64_t run_ms = 0;  // > 0
  bool operator==(const FinishedRun&) const = default;
};

// Movable, not copyable. Not thread-safe.
class RunHistory {
 public:
  static constexpr size_t kRunsOfUser = 60;
  static constexpr size_t kRunsOfWalltime = 50;
  static constexpr size_t kRunsOfAll = 50;
  static constexpr size_t kMaxRuns = 65'536;

  RunHistory() = default;
  RunHistory(RunHistory&&) noexcept = default;
  RunHistory& operator=(RunHistory&&) noexcept = default;

  // The number of the next run.
  RunId next() const { return runs_.empty() ? RunId{1} : RunId{runs_.rbegin()->first.value + 1}; }
  // Adds the run; its number is next() or greater. Returns the numbers of runs that it drops. O(log
  // runs).
  std::vector<RunId> Add(RunId id, FinishedRun run);
  // nullptr if it was dropped.
  const FinishedRun* Find(RunId id) const;
  // In order of their numbers.
  template <class Visit>
  void ForEach(Visit&& visit) const {
    for (const auto& [id, kept] : runs_) visit(id, kept.run);
  }
  size_t size() const { return runs_.size(); }

  // The prediction is unknown if there are no runs. O(110).
  RunPrediction Predict(absl::string_view user, const RunRequest& request) const;

  // True if both contain the same runs under the same lookups.
  bool SameAs(const RunHistory& other) const;

 private:
  struct Kept {
    RunId id;
    FinishedRun run;
    int64_t log_size = 0;  // FixedLog2 of devices, or of cpu_millis without devices
    int lists = 0;         // number of lists that contain it
  };
  using List = std::deque<Kept*>;  // oldest first
  struct Point;

  void Append(List& list, size_t most, Kept& kept, std::vector<RunId>* dropped);
  void Leave(Kept* kept, std::vector<RunId>* dropped);
  void DropOldest(std::vector<RunId>* dropped);
  void AddOwn(absl::string_view user, const RunRequest& request, std::vector<Point>* points) const;
  void AddOthers(const RunRequest& request, std::vector<Point>* points) const;

  std::map<RunId, Kept> runs_;
  absl::flat_hash_map<std::string, List> of_user_;  // never iterated
  std::map<int64_t, List> of_walltime_;             // by walltime_s
  List of_all_;
};

}  // namespace berth

#endif  // BERTH_CORE_PREDICTION_RUN_HISTORY_H_
