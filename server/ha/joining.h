// How a server finds its cluster in etcd, and how a cluster begins there.
#ifndef BERTH_SERVER_HA_JOINING_H_
#define BERTH_SERVER_HA_JOINING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/etcd/kv.h"
#include "storage/local_store.h"
#include "storage/replication/layout.h"
#include "storage/replication/replicated_log.h"

namespace berth {

// Generations of clusters in etcd, in order of their keys. DATA_LOSS: keys below /berth/ that are
// not Berth's. Else as for Kv.
absl::StatusOr<std::vector<FoundGeneration>> ListGenerations(Kv& kv);

// The generation of a server without a store. NOT_FOUND: etcd has none. FAILED_PRECONDITION: it has
// several clusters, naming them.
absl::StatusOr<FoundGeneration> OnlyGeneration(const std::vector<FoundGeneration>& found);

// Whether the store belongs to the newest generation of its cluster: FAILED_PRECONDITION saying
// what is wrong and what to do: etcd has other clusters only, or none; the cluster was restored
// from a backup; the store is a restored one, which has not begun its generation.
absl::Status CheckGeneration(const std::vector<FoundGeneration>& found,
                             const FoundGeneration& ours);

// Begins the store's generation in etcd, or begins it anew after EndGeneration, with all that the
// store holds, and ends earlier ones of the cluster: their servers can acknowledge nothing any
// more. The store must be synced. `earlier_terms`: no agent has heard of a higher term.
// ALREADY_EXISTS: it has begun before. FAILED_PRECONDITION: etcd has a newer one.
absl::Status BeginGeneration(Kv& kv, const LocalStore& store, uint64_t earlier_terms);

// Ends the store's generation, for a single server that goes on without etcd: returns a term, for
// agents, above all before. FAILED_PRECONDITION: the store does not hold all of the log, or other
// servers are running.
absl::StatusOr<uint64_t> EndGeneration(Kv& kv, const LocalStore& store, const std::string& name);

}  // namespace berth

#endif  // BERTH_SERVER_HA_JOINING_H_
