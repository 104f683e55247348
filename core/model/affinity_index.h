// AffinityIndex: what planning needs to know of the affinity between jobs (AffinityTerm,
// core/model/job.h) without looking at all of them.
//
//   job a {app=cache} occupies, job b is near {app=cache}, job c {app=web} occupies
//     spoken of: app=cache      With(app=cache) = {a}      Repelling() = {}
//
// Where no job has terms, all of it is empty and costs nothing. Kept by StateEditor. What is listed
// by labels follows the terms only when planning asks (StateEditor::FollowTerms): to find jobs by a
// label that nobody spoke of before, all have to be looked at once.
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

// The term speaks of `other`, for the tasks of `owner`: another job, of its queue unless of all,
// with all these labels.
bool SpeaksOf(const AffinityTerm& term, const Job& owner, const Job& other);
// It has all the labels of the term.
bool HasLabels(const Job& job, const std::vector<LabelPair>& labels);

class AffinityIndex {
 public:
  // Some job has terms.
  bool any() const { return !terms_.empty(); }
  // The job has terms, or a label that some term names.
  bool Concerns(const Job& job) const;
  // The job's labels that are followed; sorted.
  std::vector<LabelPair> FollowedOf(const Job& job) const;
  // Jobs that occupy and have that label; null: it is not followed yet.
  const absl::btree_set<JobId>* With(const LabelPair& label) const;
  // Jobs that occupy and are to be apart from others.
  const absl::btree_set<JobId>& Repelling() const { return repelling_; }

  // As it would be made from these jobs, with the same labels followed.
  bool Equals(const IdMap<JobId, Job>& jobs) const;

 private:
  friend class StateEditor;

  // The job's terms begin, or cease, to speak.
  void Speak(const Job& job, bool begins);
  // The job, which occupies, has labels; or has not.
  void List(const Job& job, bool list);
  // Labels that terms name and that are not followed; and those that are, and no term names.
  bool Lags() const { return lags_; }
  std::vector<LabelPair> TakeLag();

  absl::btree_map<LabelPair, int64_t> terms_;                    // that name the label
  absl::btree_map<LabelPair, absl::btree_set<JobId>> followed_;  // who occupies and has it
  absl::btree_set<JobId> repelling_;
  bool lags_ = false;  // maybe
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_AFFINITY_INDEX_H_
