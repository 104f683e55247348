#include "tests/simulation/collectives.h"

#include "absl/strings/str_cat.h"
#include "tests/simulation/processes.h"

namespace berth::simulation {
namespace {

constexpr absl::Duration kPeersNoticeWithin = absl::Seconds(3);

}  // namespace

void Collectives::OnStarted(size_t node, const TaskId& id, const v1::TaskLaunch& launch,
                            const v1::Start& start) {
  if (VariableOf(launch, kCollectiveVariable, 0) != 0) {
    members_[id] = {node, absl::StrCat(start.master_address(), ":", start.master_port())};
  }
  next_->OnStarted(node, id, launch, start);
}

void Collectives::OnEnded(size_t node, const TaskId& id, bool succeeded) {
  next_->OnEnded(node, id, succeeded);
  const auto ended = members_.extract(id);
  if (ended.empty() || succeeded) return;
  for (auto it = members_.lower_bound({id.job_uid, 0, 0, id.incarnation});
       it != members_.end() && it->first < TaskId{id.job_uid + 1, 0, 0, id.incarnation}; ++it) {
    const auto& [other, member] = *it;
    if (member.endpoint != ended.mapped().endpoint) continue;
    fail_(member.node, other, dice_.Between(absl::ZeroDuration(), kPeersNoticeWithin));
  }
}

}  // namespace berth::simulation
