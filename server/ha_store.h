// The store of a server with high availability: what it shares with the others is in etcd, and its
// own copy is on its disk.
#ifndef BERTH_SERVER_HA_STORE_H_
#define BERTH_SERVER_HA_STORE_H_

#include <iosfwd>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "berth/config/v1/config.pb.h"
#include "server/app.h"
#include "storage/store_health.h"

namespace berth {

// The file, in the store's directory, that marks a store as one of a cluster in etcd, and notes
// which etcd that is and how far it was.
inline constexpr char kHaMark[] = "HA";
// The file of a single server whose cluster was in etcd before: the term that it tells agents, which
// obey no lower one.
inline constexpr char kTermFile[] = "TERM";

// `config` is completed and has `ha`. Finds the cluster in etcd; a server without a store, or with
// one that is too far behind, copies that of another server first. Errors say what to do.
absl::StatusOr<OpenedStore> OpenReplicatedStore(const config::v1::Server& config,
                                                std::shared_ptr<StoreHealth> health);
// Without `ha`. FAILED_PRECONDITION: the store is one of a cluster in etcd.
absl::StatusOr<OpenedStore> OpenSingleStore(const config::v1::Server& config,
                                            std::shared_ptr<StoreHealth> health);

// Begins the cluster in etcd with this server's store, which is created if there is none. berthd
// must not be running.
absl::Status BeginHa(const config::v1::Server& config, std::ostream& report);
// Ends the cluster in etcd: from then on this server runs alone, without `ha`.
absl::Status LeaveHa(const config::v1::Server& config, std::ostream& report);

}  // namespace berth

#endif  // BERTH_SERVER_HA_STORE_H_
