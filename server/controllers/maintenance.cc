#include "server/controllers/maintenance.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/convert/values.h"
#include "support/errors.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr absl::Duration kAskAgain = absl::Milliseconds(250);
constexpr absl::Duration kLook = absl::Milliseconds(10);

}  // namespace

absl::Status Maintenance::Check(absl::Duration how_long) const {
  if (how_long > leases_->lease() && how_long <= options_.longest) return absl::OkStatus();
  return ViolationsError(
      absl::StatusCode::kInvalidArgument,
      {{"duration",
        absl::StrCat("must be longer than the lease (", absl::FormatDuration(leases_->lease()),
                     ") and at most ", absl::FormatDuration(options_.longest),
                     " (the server's longestLease), is ", absl::FormatDuration(how_long))}});
}

void Maintenance::Begin(Turn& turn, absl::Duration how_long) {
  leases_->BeginPause(turn, how_long, false, [this] { gateway_->GrantLongerLeases(); });
}

bool Maintenance::Describe(absl::Time now, v1::ClusterPause* pause) const {
  const PauseStatus status = leases_->Pause();
  if (status.left == absl::ZeroDuration()) return false;
  ToProto(now + status.left, pause->mutable_end());
  ToProto(status.left, pause->mutable_left());
  pause->set_nodes_holding(status.holding);
  pause->set_nodes_not_holding(static_cast<int32_t>(status.not_holding.size()));
  for (const std::string& name : NamesOf(status.not_holding)) pause->add_not_holding(name);
  return true;
}

std::string Maintenance::RestoreHoldText() const {
  const RestoreHold hold = leases_->Hold();
  if (hold.left == absl::ZeroDuration()) return "";
  const std::vector<std::string> names = NamesOf(hold.nodes);
  const size_t more = hold.nodes.size() - names.size();
  return absl::StrCat(
      "no job is placed yet after the restore: nodes that have not come back may still run tasks: ",
      absl::StrJoin(names, ", "), more > 0 ? absl::StrCat(" and ", more, " more") : "",
      "; at most ", absl::FormatDuration(absl::Ceil(hold.left, absl::Seconds(1))), " more");
}

// The names of the first kNamed nodes.
std::vector<std::string> Maintenance::NamesOf(const std::vector<NodeId>& nodes) const {
  return loop_->Read([&](const ClusterState& state, uint64_t) {
    std::vector<std::string> names;
    for (const NodeId id : nodes) {
      if (names.size() == kNamed) break;
      if (const Node* node = state.nodes().Find(id)) names.push_back(node->spec.name);
    }
    return names;
  });
}

bool Maintenance::AllConnectedHold() const {
  const PauseStatus status = leases_->Pause();
  return std::none_of(status.not_holding.begin(), status.not_holding.end(),
                      [this](NodeId node) { return gateway_->CurrentSession(node) != 0; });
}

void Maintenance::GrantStopLease() {
  if (options_.stop_lease <= leases_->lease()) return;
  const auto begun = std::make_shared<absl::Notification>();
  const absl::Status posted = loop_->Post(
      [this, begun](Turn& turn) {
        leases_->BeginPause(turn, options_.stop_lease, true, [begun] { begun->Notify(); });
      },
      CommandClass::kEssential);
  if (!posted.ok() || !begun->WaitForNotificationWithTimeout(kDurableWithin)) {
    LogWarn("cannot record a longer lease before the stop: agents keep the usual one",
            {{"lease", absl::FormatDuration(leases_->lease())}});
    return;
  }
  const absl::Time end = absl::Now() + kConfirmWithin;
  absl::Time ask = absl::Now();
  while (!AllConnectedHold() && absl::Now() < end) {
    if (absl::Now() >= ask) {
      gateway_->GrantLongerLeases();
      ask += kAskAgain;
    }
    absl::SleepFor(kLook);
  }
  const PauseStatus status = leases_->Pause();
  LogInfo("agents were granted a longer lease for the stop",
          {{"lease", absl::FormatDuration(options_.stop_lease)},
           {"holding", status.holding},
           {"not_holding", status.not_holding.size()}});
  if (status.not_holding.empty()) return;
  LogWarn(
      "these nodes did not confirm the longer lease: they kill their strict tasks after the "
      "usual one",
      {{"nodes", absl::StrJoin(NamesOf(status.not_holding), ", ")},
       {"lease", absl::FormatDuration(leases_->lease())}});
}

}  // namespace berth
