// Whether a caller may do something, and what to answer if not. Reader lock or loop thread.
//
//   const Rights rights(call.caller);
//   if (absl::Status status = Admit(state, rights, call.rpc); !status.ok()) return status;  // once
//   if (absl::Status status = PermitOnJob(state, rights, call.rpc, *job); !status.ok()) ...
#ifndef BERTH_SERVER_ACCESS_PERMIT_H_
#define BERTH_SERVER_ACCESS_PERMIT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/access/access.h"
#include "core/model/cluster_state.h"
#include "server/access/caller.h"
#include "server/access/rpcs.h"

namespace berth {

// The queue, its parent, and so on to the root.
using PathToRoot = absl::InlinedVector<QueueId, 8>;
PathToRoot PathOf(const ClusterState& state, QueueId queue);

// What one caller may do. Remembers what it found for a queue for as long as the rules stay the
// same, so that long lists and streams look each queue up once. One thread at a time.
class Rights {
 public:
  explicit Rights(std::shared_ptr<const Caller> caller) : caller_(std::move(caller)) {}

  const Caller& caller() const { return *caller_; }
  // The root also stands for the cluster.
  VerbSet At(const ClusterState& state, QueueId queue);
  bool OnCluster(const ClusterState& state, Verb verb) { return At(state, kRootQueue).Has(verb); }
  bool OnQueue(const ClusterState& state, Verb verb, QueueId queue) {
    return At(state, queue).Has(verb);
  }
  // The owner of the job needs no grant. A task has kTaskVerbs on its own job, and nothing else.
  bool OnJob(const ClusterState& state, Verb verb, const Job& job);
  // Whether the caller may see every job, queue and node: then nothing needs to be left out.
  bool SeesAll(const ClusterState& state);

 private:
  std::shared_ptr<const Caller> caller_;
  std::optional<uint64_t> version_;  // of the rules
  absl::flat_hash_map<QueueId, VerbSet> known_;
};

// UNAUTHENTICATED: the caller's certificate has expired at `now`.
absl::Status CheckNotExpired(const Caller& caller, absl::Time now);

// PERMISSION_DENIED: the caller, its certificate, or the node that it speaks for is revoked.
absl::Status CheckNotRevoked(const ClusterState& state, const Caller& caller,
                             absl::string_view node = {});

// Once per call, before anything is looked up. UNAUTHENTICATED: the rules are enforced and the
// caller is nobody, or its certificate has expired at `now`; PERMISSION_DENIED: it is revoked, or
// is an agent's, or the method is one over the cluster and its verb is missing; or it is a task
// that does not run there, or may not call the method. UNAVAILABLE: the session of its agent is
// over.
absl::Status Admit(const ClusterState& state, Rights& rights, Rpc rpc, absl::Time now);

// The verb and the words of the method's row. PERMISSION_DENIED with the role that would allow it,
// where, and who may grant it; for a job that the caller may not even list NOT_FOUND, as for a name
// that nobody uses.
absl::Status PermitOnQueue(const ClusterState& state, Rights& rights, Rpc rpc, const Queue& queue);
absl::Status PermitOnJob(const ClusterState& state, Rights& rights, Rpc rpc, const Job& job);

// For verbs besides that of the row. `act`: what was tried, for people.
absl::Status PermitVerb(const ClusterState& state, Rights& rights, Verb verb, QueueId queue,
                        absl::string_view act);

// "role queue-admin in queue "team-a" allows it, which user "lead" may grant"
std::string RemedyText(const ClusterState& state, Verb verb, QueueId queue);

}  // namespace berth

#endif  // BERTH_SERVER_ACCESS_PERMIT_H_
