// Messages of etcd's API from and to those of Kv. For the client only: brings gRPC and protobuf.
#ifndef BERTH_STORAGE_ETCD_ETCD_MESSAGES_H_
#define BERTH_STORAGE_ETCD_ETCD_MESSAGES_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "etcd/etcd.pb.h"
#include "storage/etcd/kv.h"

namespace berth {

// `txn` passes CheckTxn.
etcdserverpb::TxnRequest EtcdRequest(const KvTxn& txn);

// The answer to `txn`, whose values it takes. FAILED_PRECONDITION: no etcd would answer this.
absl::StatusOr<KvResult> ResultFrom(const KvTxn& txn, etcdserverpb::TxnResponse& response);

// As Kv describes errors. Whatever is not known to be a refusal counts as no answer.
absl::Status StatusFromEtcd(const grpc::Status& status, const std::string& endpoint);

// UNAVAILABLE or DEADLINE_EXCEEDED.
bool IsNoAnswer(const absl::Status& status);

}  // namespace berth

#endif  // BERTH_STORAGE_ETCD_ETCD_MESSAGES_H_
