#include "core/model/affinity_index.h"

#include <algorithm>
#include <utility>

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

bool RefersTo(const AffinityTerm& term, const Job& owner, const Job& other) {
  return other.id != owner.id && (term.all_queues || other.queue == owner.queue) &&
         HasLabels(other, term.labels);
}

bool AffinityIndex::Concerns(const Job& job) const {
  if (!any()) return false;
  return !job.affinity.empty() ||
         std::any_of(job.labels.begin(), job.labels.end(),
                     [&](const LabelPair& label) { return terms_.contains(label); });
}

std::vector<LabelPair> AffinityIndex::FollowedOf(const Job& job) const {
  std::vector<LabelPair> labels;
  if (followed_.empty()) return labels;
  for (const auto& [key, value] : job.labels) {
    LabelPair label(key, value);
    if (followed_.contains(label)) labels.push_back(std::move(label));
  }
  return labels;
}

const absl::btree_set<JobId>* AffinityIndex::With(const LabelPair& label) const {
  const auto found = followed_.find(label);
  return found == followed_.end() ? nullptr : &found->second;
}

bool AffinityIndex::Equals(const IdMap<JobId, Job>& jobs) const {
  AffinityIndex wanted;
  for (const auto& [label, with] : followed_) wanted.followed_[label];
  jobs.ForEach([&](JobId, const Job& job) {
    wanted.UpdateTerms(job, true);
    if (job.occupying > 0) wanted.List(job, true);
  });
  return terms_ == wanted.terms_ && followed_ == wanted.followed_ &&
         repelling_ == wanted.repelling_;
}

void AffinityIndex::UpdateTerms(const Job& job, bool begins) {
  for (const AffinityTerm& term : job.affinity) {
    for (const LabelPair& label : term.labels) {
      int64_t& terms = terms_[label];
      terms += begins ? 1 : -1;
      lags_ |= terms == (begins ? 1 : 0);
      if (terms == 0) terms_.erase(label);
    }
  }
}

void AffinityIndex::List(const Job& job, bool list) {
  for (const LabelPair& label : FollowedOf(job)) {
    absl::btree_set<JobId>& with = followed_.at(label);
    const bool changed = list ? with.insert(job.id).second : with.erase(job.id) == 1;
    BERTH_CHECK(changed);
  }
  if (!Repels(job)) return;
  if (list) {
    repelling_.insert(job.id);
  } else {
    repelling_.erase(job.id);
  }
}

std::vector<LabelPair> AffinityIndex::TakeLag() {
  lags_ = false;
  std::vector<LabelPair> changed;
  for (const auto& [label, terms] : terms_) {
    if (!followed_.contains(label)) changed.push_back(label);
  }
  for (auto it = followed_.begin(); it != followed_.end();) {
    const bool named = terms_.contains(it->first);
    if (!named) changed.push_back(it->first);
    it = named ? std::next(it) : followed_.erase(it);
  }
  for (const LabelPair& label : changed) {
    if (terms_.contains(label)) followed_[label];
  }
  return changed;
}

}  // namespace berth
