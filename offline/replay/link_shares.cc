#include "offline/replay/link_shares.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/check.h"

namespace berth::replay {

LinkIndex LinkShares::AddLink(double gbps) {
  links_.push_back({.gbps = gbps, .jobs = {}});
  return static_cast<LinkIndex>(links_.size() - 1);
}

std::set<JobId> LinkShares::Sharing(JobId job, const std::vector<Crossing>& crossings) const {
  std::set<JobId> others;
  for (const Crossing& crossing : crossings) {
    const std::set<JobId>& jobs = links_[crossing.link].jobs;
    others.insert(jobs.begin(), jobs.end());
  }
  others.erase(job);
  return others;
}

std::set<JobId> LinkShares::Join(JobId job, std::vector<Crossing> crossings) {
  std::set<JobId> others = Sharing(job, crossings);
  for (const Crossing& crossing : crossings) {
    BERTH_CHECK(crossing.times >= 1);
    BERTH_CHECK(links_[crossing.link].jobs.insert(job).second);
  }
  BERTH_CHECK(crossings_.emplace(job, std::move(crossings)).second);
  return others;
}

std::set<JobId> LinkShares::Leave(JobId job) {
  const auto found = crossings_.find(job);
  BERTH_CHECK(found != crossings_.end());
  std::set<JobId> others = Sharing(job, found->second);
  for (const Crossing& crossing : found->second) links_[crossing.link].jobs.erase(job);
  crossings_.erase(found);
  return others;
}

double LinkShares::Gbps(JobId job) const {
  const auto found = crossings_.find(job);
  BERTH_CHECK(found != crossings_.end());
  double least = std::numeric_limits<double>::infinity();
  for (const Crossing& crossing : found->second) {
    const Link& link = links_[crossing.link];
    const auto jobs = static_cast<double>(link.jobs.size());
    least = std::min(least, link.gbps / jobs / crossing.times);
  }
  return least;
}

}  // namespace berth::replay
