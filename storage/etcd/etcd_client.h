// EtcdClient: Kv over etcd's gRPC API, version 3.
#ifndef BERTH_STORAGE_ETCD_ETCD_CLIENT_H_
#define BERTH_STORAGE_ETCD_ETCD_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/etcd/etcd_admin.h"
#include "storage/etcd/kv.h"
#include "support/tls.h"

namespace berth {

struct EtcdOptions {
  // Of etcd's members: HOST:PORT, or http://HOST:PORT without and https://HOST:PORT with `tls`.
  std::vector<std::string> endpoints;
  TlsFiles tls;                                             // empty: plain text
  absl::Duration deadline = absl::Milliseconds(400);        // of a call
  absl::Duration write_deadline = absl::Milliseconds(800);  // of each call of CommitAll
  // What earlier processes saw; 0: nothing.
  uint64_t cluster = 0;
  int64_t least_revision = 0;
};

// Thread-safe. Asks the endpoint that answered last; one that does not answer is left for the next
// one, and is asked again when that fails too. Reads are repeated at the next endpoint. A write is
// repeated there only if it was never sent, because no connection could be made.
class EtcdClient final : public Kv, public EtcdAdmin {
 public:
  // INVALID_ARGUMENT: no endpoint or a bad one, or bad TLS files. Connects with the first call.
  static absl::StatusOr<std::unique_ptr<EtcdClient>> Create(EtcdOptions options);
  ~EtcdClient() override;

  absl::StatusOr<KvResult> Commit(const KvTxn& txn) override;
  std::vector<absl::StatusOr<KvResult>> CommitAll(absl::Span<const KvTxn> txns,
                                                  size_t in_flight) override;
  absl::Status Compact(int64_t revision) override;

  // Of the etcd that answered; 0: none has yet.
  uint64_t cluster() const;
  // Newest revision seen.
  int64_t revision() const;

  std::vector<EtcdMemberStatus> Members() override;
  absl::StatusOr<std::vector<EtcdAlarm>> Alarms() override;
  absl::StatusOr<std::vector<EtcdPeer>> Peers() override;
  absl::Status DisarmNoSpace() override;
  absl::Status Defragment(const std::string& endpoint) override;

 private:
  class Impl;
  explicit EtcdClient(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace berth

#endif  // BERTH_STORAGE_ETCD_ETCD_CLIENT_H_
