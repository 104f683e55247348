#include "core/model/affinity_index.h"

#include <algorithm>

#include "core/base/check.h"

namespace berth {
namespace {

bool Repels(const Job& job) {
  return std::any_of(job.affinity.begin(), job.affinity.end(),
                     [](const AffinityTerm& term) { return term.apart; });
}

}  // namespace

bool HasLabels(const Job& job, const std::vector<LabelPair>& labels) {
  return std::all_of(labels.begin(), labels.end(), [&](const LabelPair& label) {
    const auto found = job.labels.find(label.first);
    return found != job.labels.end() && found->second == label.second;
  });
}

bool SpeaksOf(const AffinityTerm& term, const Job& owner, const Job& other) {
  return other.id != owner.id && (term.all_queues || other.queue == owner.queue) &&
         HasLabels(other, term.labels);
}

std::vector<LabelPair> AffinityIndex::SpokenOf(const Job& job) const {
  std::vector<LabelPair> labels;
  if (!any()) return labels;
  for (const auto& [key, value] : job.labels) {
    if (keys_.contains(key)) labels.emplace_back(key, value);
  }
  return labels;
}

bool AffinityIndex::Concerns(const Job& job) const {
  if (!any()) return false;
  return !job.affinity.empty() ||
         std::any_of(job.labels.begin(), job.labels.end(),
                     [&](const auto& label) { return keys_.contains(label.first); });
}

const absl::btree_set<JobId>& AffinityIndex::With(const LabelPair& label) const {
  static const auto* const kNone = new absl::btree_set<JobId>();
  const auto found = with_.find(label);
  return found == with_.end() ? *kNone : found->second;
}

std::vector<std::string> AffinityIndex::Speak(const Job& job, bool begins) {
  std::vector<std::string> changed;
  for (const AffinityTerm& term : job.affinity) {
    for (const LabelPair& label : term.labels) {
      int64_t& terms = keys_[label.first];
      if (begins && terms == 0) changed.push_back(label.first);
      terms += begins ? 1 : -1;
      if (terms != 0) continue;
      changed.push_back(label.first);
      keys_.erase(label.first);
    }
  }
  return changed;
}

void AffinityIndex::List(const Job& job, bool list) {
  if (!any()) return;
  for (const LabelPair& label : SpokenOf(job)) {
    if (list) {
      with_[label].insert(job.id);
      continue;
    }
    const auto found = with_.find(label);
    BERTH_CHECK(found != with_.end() && found->second.erase(job.id) == 1);
    if (found->second.empty()) with_.erase(found);
  }
  if (!Repels(job)) return;
  if (list) {
    repelling_.insert(job.id);
  } else {
    repelling_.erase(job.id);
  }
}

AffinityIndex AffinityIndex::Of(const IdMap<JobId, Job>& jobs) {
  AffinityIndex index;
  jobs.ForEach([&](JobId, const Job& job) { index.Speak(job, true); });
  jobs.ForEach([&](JobId, const Job& job) {
    if (job.occupying > 0) index.List(job, true);
  });
  return index;
}

void AffinityIndex::ListKey(const Job& job, const std::string& key) {
  const auto label = job.labels.find(key);
  if (label != job.labels.end()) with_[*label].insert(job.id);
}

void AffinityIndex::ForgetKey(const std::string& key) {
  const auto begin = with_.lower_bound(LabelPair(key, ""));
  auto end = begin;
  while (end != with_.end() && end->first.first == key) ++end;
  with_.erase(begin, end);
}

}  // namespace berth
