// Calls that their client may repeat with the id of support/request_id.h: done once, and repeats
// get the first response. The id is one of the caller, the method and the target.
#ifndef BERTH_SERVER_SERVICES_ONCE_H_
#define BERTH_SERVER_SERVICES_ONCE_H_

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/access/call.h"
#include "server/commands/request_table.h"
#include "server/loop/turn.h"

namespace berth {

// Responses above this size are not kept: a repeat does the work again.
inline constexpr size_t kMaxKeptAnswer = 64 << 10;

// Sets call.once_id and call.request_id from the metadata, if it has an id. Not for methods whose
// response has a secret.
void TakeRequestId(const grpc::ServerContextBase& context, Call* call);

// Returns change(), unless the call was done before: then `response` is that of before. Errors are
// not remembered. INVALID_ARGUMENT: the id is too long. ALREADY_EXISTS: it was given to another
// call. Loop thread.
absl::Status DoOnce(Turn& turn, RequestTable& requests, const Call& call,
                    google::protobuf::Message& response, absl::FunctionRef<absl::Status()> change);

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_ONCE_H_
