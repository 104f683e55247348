// AffinityIndex: what placing needs to know of the affinity between jobs (AffinityTerm,
// core/model/job.h) without looking at all of them.
//
//   job a {label app=cache} occupies, job b is near {app=cache}, job c {app=web} occupies
//     spoken of: key app      With(app=cache) = {a}   With(app=web) = {c}   Repelling() = {}
//
// Where no job has terms, all of it is empty and costs nothing. Kept by StateEditor.
#ifndef BERTH_CORE_MODEL_AFFINITY_INDEX_H_
#define BERTH_CORE_MODEL_AFFINITY_INDEX_H_

#include <cstdint>
#include <string>
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
  bool any() const { return !keys_.empty(); }
  // The job's labels whose keys some term speaks of; sorted by key.
  std::vector<LabelPair> SpokenOf(const Job& job) const;
  // Whether the job has terms, or a label whose key some term speaks of.
  bool Concerns(const Job& job) const;
  // Jobs that occupy and have that label; the label's key is one that some term speaks of.
  const absl::btree_set<JobId>& With(const LabelPair& label) const;
  // Jobs that occupy and are to be apart from others.
  const absl::btree_set<JobId>& Repelling() const { return repelling_; }
  // What it is for these jobs.
  static AffinityIndex Of(const IdMap<JobId, Job>& jobs);
  bool operator==(const AffinityIndex&) const = default;

 private:
  friend class StateEditor;

  // The job's terms begin, or cease, to speak. Returns the keys of which nobody spoke before, or
  // does from now on.
  std::vector<std::string> Speak(const Job& job, bool begins);
  // The job, which occupies, has labels; or has not.
  void List(const Job& job, bool list);
  // The same with that key alone.
  void ListKey(const Job& job, const std::string& key);
  void ForgetKey(const std::string& key);

  absl::btree_map<std::string, int64_t> keys_;  // terms that name them
  absl::btree_map<LabelPair, absl::btree_set<JobId>> with_;
  absl::btree_set<JobId> repelling_;
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_AFFINITY_INDEX_H_
