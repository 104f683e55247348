// What each method of the API needs: a verb, and over what. Every method has a row: the list of
// methods comes from the protos at build time, and the compiler names the one without a row.
#ifndef BERTH_SERVER_ACCESS_RPCS_H_
#define BERTH_SERVER_ACCESS_RPCS_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/access/verbs.h"
#include "server/access/rpc_list.h"

namespace berth {

#define BERTH_RPC_ENUM(service, method) k##service##method,
enum class Rpc : uint8_t { BERTH_RPCS(BERTH_RPC_ENUM) };
#undef BERTH_RPC_ENUM

#define BERTH_RPC_COUNT(service, method) +1
inline constexpr size_t kRpcs = 0 BERTH_RPCS(BERTH_RPC_COUNT);
#undef BERTH_RPC_COUNT

// "JobService.GetJob"
absl::string_view NameOf(Rpc rpc);

// Over what the verb is needed.
enum class Over : uint8_t {
  kCluster,
  kQueue,    // that the request names, or its parent for a new or deleted one
  kJob,      // the queue of the job that the request names; its owner needs no grant
  kRows,     // nothing by itself: rows of the answer, entries of the request, for which one has it
  kAnyone,   // no verb: the answer is about the caller
  kOwnNode,  // a node's certificate, for that node; no grant gives it
  kServer,   // a token that only servers of the cluster know; no grant gives it
};

struct RpcNeed {
  Verb verb;  // nothing with kAnyone, kOwnNode and kServer
  Over over;
  absl::string_view act;  // for people, before the target: "cancel", "list nodes"
};
RpcNeed NeedOf(Rpc rpc);
// Whether a task may call it, about its own job.
bool TasksMayCall(Rpc rpc);

// Whether a standby answers the call from its own state: `kIfStale`: only to who accepts that it
// may be behind the leader (support/standby.h).
enum class OnStandby : uint8_t { kNo, kIfStale, kYes };
OnStandby OnStandbyOf(Rpc rpc);

}  // namespace berth

#endif  // BERTH_SERVER_ACCESS_RPCS_H_
