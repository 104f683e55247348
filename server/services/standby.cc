#include "server/services/standby.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "support/standby.h"

namespace berth {

void MarkStandby(const Leadership& leadership, uint64_t revision,
                 grpc::CallbackServerContext& context, Call* call) {
  const std::string leader = leadership.leader_address();
  if (!leader.empty()) context.AddTrailingMetadata(kLeaderMetadata, leader);
  const auto found = context.client_metadata().find(kStaleMetadata);
  call->stale = found != context.client_metadata().end() && found->second == kStaleAllowed;
  if (call->stale) context.AddTrailingMetadata(kStaleRevisionMetadata, absl::StrCat(revision));
}

absl::Status CheckOnStandby(const Leadership& leadership, const Call& call) {
  switch (OnStandbyOf(call.rpc)) {
    case OnStandby::kYes:
      return absl::OkStatus();
    case OnStandby::kIfStale:
      if (call.stale) return absl::OkStatus();
      break;
    case OnStandby::kNo:
      break;
  }
  const std::string leader = leadership.leader_address();
  return absl::UnavailableError(
      leader.empty() ? absl::StrCat(kStandbyMessage, ", and no server leads the cluster yet")
                     : absl::StrCat(kStandbyMessage, "; the leader is ", leader));
}

}  // namespace berth
