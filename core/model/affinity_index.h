// AffinityIndex: the data on affinity between jobs (AffinityTerm, core/model/job.h) that planning
// needs, without a scan of all jobs.
//
//   job a {app=cache} occupies, job b is near {app=cache}, job c {app=web} occupies
//     named by terms: app=cache      With(app=cache) = {a}      Repelling() = {}
//
// If no job has terms, all of it is empty and costs nothing. Kept by StateEditor. The lists by
// label follow the terms only when planning asks for it (StateEditor::FollowTerms): finding jobs by
// a new label takes one scan of all jobs.
#ifndef BERTH_CORE_MODEL_AFFINITY_INDEX_H_
#define BERTH_CORE_MODEL_AFFINITY_INDEX_H_

#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "core/base/id_map.h"
#include "core/model/ids.h"
#include "core/model/job.h"

namespace berth {

// True if the term, for tasks of `owner`, refers to `other`: another job with all these labels, in
// the same queue unless the term covers all queues.
bool RefersTo(const AffinityTerm& term, const Job& owner, const Job& other);
// True if the job has all the labels.
bool HasLabels(const Job& job, const std::vector<LabelPair>& labels);

class AffinityIndex {
 public:
  // True if some job has terms.
  bool any() const { return !terms_.empty(); }
  // True if the job has terms, or a label that some term names.
  bool Concerns(const Job& job) const;
  // The job's labels that are followed, sorted.
  std::vector<LabelPair> FollowedOf(const Job& job) const;
  // Jobs that occupy and have that label; null if the label is not followed yet.
  const absl::btree_set<JobId>* With(const LabelPair& label) const;
  // Jobs that occupy and have a term that keeps others apart.
  const absl::btree_set<JobId>& Repelling() const { return repelling_; }

  // True if rebuilding it from these jobs, with the same labels followed, gives the same.
  bool Equals(const IdMap<JobId, Job>& jobs) const;

 private:
  friend class StateEditor;

  // Adds or removes the job's terms.
  void UpdateTerms(const Job& job, bool begins);
  // Adds an occupying job to the lists of its labels, or removes it.
  void List(const Job& job, bool list);
  // True if terms name labels that are not followed, or labels are followed that no term names.
  bool Lags() const { return lags_; }
  std::vector<LabelPair> TakeLag();

  absl::btree_map<LabelPair, int64_t> terms_;                    // number of terms with the label
  absl::btree_map<LabelPair, absl::btree_set<JobId>> followed_;  // occupying jobs with the label
  absl::btree_set<JobId> repelling_;
  bool lags_ = false;  // may be true without need
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_AFFINITY_INDEX_H_
