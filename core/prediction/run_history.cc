#include "core/prediction/run_history.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/fixed_log.h"

namespace berth {

std::vector<RunId> RunHistory::Add(RunId id, FinishedRun run) {
  BERTH_CHECK(id >= next() && run.run_ms > 0);
  std::vector<RunId> dropped;
  const RunRequest& request = run.request;
  const int64_t size = request.devices > 0 ? request.devices : request.cpu_millis;
  const int64_t log_size = FixedLog2(static_cast<uint64_t>(size));
  Kept& kept = runs_[id];
  kept = Kept{.id = id, .run = std::move(run), .log_size = log_size};
  Append(of_user_[kept.run.user], kRunsOfUser, kept, &dropped);
  Append(of_walltime_[kept.run.request.walltime_s], kRunsOfWalltime, kept, &dropped);
  Append(of_all_, kRunsOfAll, kept, &dropped);
  if (runs_.size() > kMaxRuns) DropOldest(&dropped);
  return dropped;
}

void RunHistory::Append(List& list, size_t most, Kept& kept, std::vector<RunId>* dropped) {
  list.push_back(&kept);
  ++kept.lists;
  if (list.size() <= most) return;
  Kept* oldest = list.front();
  list.pop_front();
  Leave(oldest, dropped);
}

void RunHistory::Leave(Kept* kept, std::vector<RunId>* dropped) {
  if (--kept->lists > 0) return;
  const RunId id = kept->id;
  dropped->push_back(id);
  runs_.erase(id);
}

// It is the oldest in each list that contains it.
void RunHistory::DropOldest(std::vector<RunId>* dropped) {
  Kept* oldest = &runs_.begin()->second;
  const auto of_user = of_user_.find(oldest->run.user);
  const auto of_walltime = of_walltime_.find(oldest->run.request.walltime_s);
  const auto leave = [&](List& list) {
    if (list.empty() || list.front() != oldest) return false;
    list.pop_front();
    return list.empty();
  };
  if (leave(of_user->second)) of_user_.erase(of_user);
  if (leave(of_walltime->second)) of_walltime_.erase(of_walltime);
  leave(of_all_);
  oldest->lists = 1;
  Leave(oldest, dropped);
}

const FinishedRun* RunHistory::Find(RunId id) const {
  const auto found = runs_.find(id);
  return found == runs_.end() ? nullptr : &found->second.run;
}

bool RunHistory::SameAs(const RunHistory& other) const {
  const auto same_list = [](const List& a, const List& b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(),
                      [](const Kept* x, const Kept* y) { return x->id == y->id; });
  };
  const auto same_lists = [&](const auto& a, const auto& b) {
    if (a.size() != b.size()) return false;
    for (const auto& [key, list] : a) {
      const auto found = b.find(key);
      if (found == b.end() || !same_list(list, found->second)) return false;
    }
    return true;
  };
  const auto same_run = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.run == b.second.run && a.second.lists == b.second.lists;
  };
  return runs_.size() == other.runs_.size() &&
         std::equal(runs_.begin(), runs_.end(), other.runs_.begin(), same_run) &&
         same_lists(of_user_, other.of_user_) && same_lists(of_walltime_, other.of_walltime_) &&
         same_list(of_all_, other.of_all_);
}

}  // namespace berth
