// What a standby answers to calls.
#ifndef BERTH_SERVER_SERVICES_STANDBY_H_
#define BERTH_SERVER_SERVICES_STANDBY_H_

#include <grpcpp/server_context.h>

#include <cstdint>

#include "absl/status/status.h"
#include "server/access/call.h"
#include "server/loop/leadership.h"

namespace berth {

// Adds to the answer's trailer where the leader is, and if the client accepts a stale answer, the
// revision that it shows; notes in the call whether it does.
void MarkStandby(const Leadership& leadership, uint64_t revision,
                 grpc::CallbackServerContext& context, Call* call);
// UNAVAILABLE, naming the leader: the call is for the leader.
absl::Status CheckOnStandby(const Leadership& leadership, const Call& call);

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_STANDBY_H_
