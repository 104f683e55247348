// RunHistory: the finished runs by which run times are predicted.
//
// Kept are the last 60 runs of each user, the last 50 of each requested walltime, and the last 50
// of all; of these 65,536 at most, the oldest going first. It is a fact of the cluster's state:
// each run comes with an event (JobRunRecorded), and stays under its number until it is dropped.
//
// The method is a weighted distribution of past runs, in the line of D. Tsafrir, Y. Etsion,
// D. G. Feitelson, "Backfilling using system-generated predictions rather than user runtime
// estimates" (IEEE TPDS 18, 2007), which takes the mean of the user's last two runs.
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

// Moving keeps it whole; it cannot be copied. No thread safety.
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
  // Takes the run in; its number is next() or greater. Returns the numbers of those that are kept
  // no longer. O(log runs).
  std::vector<RunId> Add(RunId id, FinishedRun run);
  // nullptr if it is not kept.
  const FinishedRun* Find(RunId id) const;
  // In order of their numbers.
  template <class Visit>
  void ForEach(Visit&& visit) const {
    for (const auto& [id, kept] : runs_) visit(id, kept.run);
  }
  size_t size() const { return runs_.size(); }

  // Nothing is known where no run is. O(110).
  RunPrediction Predict(absl::string_view user, const RunRequest& request) const;

  // Each run is found in the same way.
  bool SameAs(const RunHistory& other) const;

 private:
  struct Kept {
    RunId id;
    FinishedRun run;
    int64_t log_size = 0;  // FixedLog2 of devices, or without these of cpu_millis
    int lists = 0;         // that hold it
  };
  using List = std::deque<Kept*>;  // oldest first
  struct Point;

  void Append(List& list, size_t most, Kept& kept, std::vector<RunId>* dropped);
  void Leave(Kept* kept, std::vector<RunId>* dropped);
  void DropOldest(std::vector<RunId>* dropped);
  void AddOwn(absl::string_view user, const RunRequest& request, std::vector<Point>* points) const;
  void AddOthers(const RunRequest& request, std::vector<Point>* points) const;

  std::map<RunId, Kept> runs_;
  absl::flat_hash_map<std::string, List> of_user_;  // looked up only
  std::map<int64_t, List> of_walltime_;             // by walltime_s
  List of_all_;
};

}  // namespace berth

#endif  // BERTH_CORE_PREDICTION_RUN_HISTORY_H_
