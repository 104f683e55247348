#include "storage/etcd/etcd_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "etcd/etcd.grpc.pb.h"
#include "support/errors.h"

namespace berth {
namespace {

namespace pb = etcdserverpb;

constexpr int kMaxAnswer = 64 << 20;
constexpr int kReconnectMs = 100, kMaxReconnectMs = 1000;
constexpr absl::Duration kDefragmentDeadline = absl::Minutes(5);

// ---- Messages

void Convert(const KvOp& op, bool stale, pb::RequestOp* out) {
  switch (op.kind) {
    case KvOp::Kind::kGet: {
      pb::RangeRequest* range = out->mutable_request_range();
      range->set_key(op.key);
      range->set_range_end(op.end);
      range->set_limit(op.limit);
      range->set_serializable(stale);
      return;
    }
    case KvOp::Kind::kPut:
      out->mutable_request_put()->set_key(op.key);
      out->mutable_request_put()->set_value(op.value);
      return;
    case KvOp::Kind::kDelete:
      out->mutable_request_delete_range()->set_key(op.key);
      out->mutable_request_delete_range()->set_range_end(op.end);
      return;
  }
}

pb::TxnRequest Convert(const KvTxn& txn) {
  pb::TxnRequest request;
  for (const KvCompare& compare : txn.compares) {
    pb::Compare* out = request.add_compare();
    out->set_key(compare.key);
    if (compare.field == KvCompare::Field::kCreateRevision) {
      out->set_target(pb::Compare::CREATE);
      out->set_create_revision(compare.revision);
    } else {
      out->set_target(pb::Compare::MOD);
      out->set_mod_revision(compare.revision);
    }
  }
  for (const KvOp& op : txn.then) Convert(op, txn.stale, request.add_success());
  for (const KvOp& op : txn.otherwise) Convert(op, txn.stale, request.add_failure());
  return request;
}

KvResult Convert(pb::TxnResponse& response) {
  KvResult result{.held = response.succeeded(), .revision = response.header().revision()};
  for (pb::ResponseOp& op : *response.mutable_responses()) {
    std::vector<KvItem>& items = result.items.emplace_back();
    if (!op.has_response_range()) continue;
    for (pb::KeyValue& item : *op.mutable_response_range()->mutable_kvs()) {
      items.push_back({.key = std::move(*item.mutable_key()),
                       .value = std::move(*item.mutable_value()),
                       .create_revision = item.create_revision(),
                       .mod_revision = item.mod_revision()});
    }
  }
  return result;
}

// As Kv describes them.
absl::Status Convert(const grpc::Status& status, const std::string& endpoint) {
  if (status.ok()) return absl::OkStatus();
  const std::string text = absl::StrCat("etcd at ", endpoint, ": ", status.error_message());
  switch (status.error_code()) {
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      if (absl::StrContains(text, "space exceeded")) return absl::ResourceExhaustedError(text);
      if (absl::StrContains(text, "too many requests")) return absl::UnavailableError(text);
      return absl::InvalidArgumentError(text);
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::OUT_OF_RANGE:
      return absl::InvalidArgumentError(text);
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return absl::PermissionDeniedError(text);
    case grpc::StatusCode::UNIMPLEMENTED:
      return absl::FailedPreconditionError(text);
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return absl::DeadlineExceededError(text);
    default:
      return absl::UnavailableError(text);
  }
}

bool NoAnswer(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

bool WritesNothing(const KvTxn& txn) {
  const auto reads = [](const KvOp& op) { return op.kind == KvOp::Kind::kGet; };
  return std::all_of(txn.then.begin(), txn.then.end(), reads) &&
         std::all_of(txn.otherwise.begin(), txn.otherwise.end(), reads);
}

void Prepare(grpc::ClientContext& context, absl::Duration deadline, bool needs_leader) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
  // A member that is cut off from the others refuses at once.
  if (needs_leader) context.AddMetadata("hasleader", "true");
}

}  // namespace

class EtcdClient::Impl {
 public:
  struct Endpoint {
    std::string address;
    std::unique_ptr<pb::KV::Stub> kv;
    std::unique_ptr<pb::Maintenance::Stub> maintenance;
  };

  explicit Impl(EtcdOptions options)
      : options_(std::move(options)),
        cluster_(options_.cluster),
        revision_(options_.least_revision) {}

  absl::Status Connect();

  // The endpoint to ask, and for TurnFrom.
  size_t current() const { return current_.load() % endpoints_.size(); }
  // The endpoint has not answered: asks the next one from now on.
  void TurnFrom(size_t index) {
    size_t expected = index;
    current_.compare_exchange_strong(expected, (index + 1) % endpoints_.size());
  }
  // Whether it is the etcd of before.
  absl::Status Check(const pb::ResponseHeader& header) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<KvResult> CommitAt(size_t index, const KvTxn& txn);
  std::vector<absl::StatusOr<KvResult>> CommitAllAt(size_t index, absl::Span<const KvTxn> txns,
                                                    size_t in_flight);

  const EtcdOptions options_;
  std::vector<Endpoint> endpoints_;
  mutable absl::Mutex mutex_;
  uint64_t cluster_ ABSL_GUARDED_BY(mutex_);
  int64_t revision_ ABSL_GUARDED_BY(mutex_);

 private:
  std::atomic<size_t> current_{0};
};

absl::Status EtcdClient::Impl::Connect() {
  if (options_.endpoints.empty()) return absl::InvalidArgumentError("etcd needs an endpoint");
  const auto credentials = MakeLastingChannelCredentials(options_.tls);
  if (!credentials.ok()) return credentials.status();
  for (const std::string& address : options_.endpoints) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMaxAnswer);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMs);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMs);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMs);
    const auto channel = grpc::CreateCustomChannel(address, *credentials, arguments);
    endpoints_.push_back({.address = address,
                          .kv = pb::KV::NewStub(channel),
                          .maintenance = pb::Maintenance::NewStub(channel)});
  }
  return absl::OkStatus();
}

absl::Status EtcdClient::Impl::Check(const pb::ResponseHeader& header) {
  absl::MutexLock lock(&mutex_);
  if (cluster_ == 0) cluster_ = header.cluster_id();
  if (cluster_ == header.cluster_id()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("this is another etcd than before: cluster ",
                                                    absl::Hex(header.cluster_id()), ", not ",
                                                    absl::Hex(cluster_)));
}

absl::StatusOr<KvResult> EtcdClient::Impl::CommitAt(size_t index, const KvTxn& txn) {
  const Endpoint& endpoint = endpoints_[index];
  grpc::ClientContext context;
  Prepare(context, options_.deadline, !txn.stale);
  pb::TxnResponse response;
  const grpc::Status done = endpoint.kv->Txn(&context, Convert(txn), &response);
  absl::Status status = Convert(done, endpoint.address);
  if (status.ok()) status = Check(response.header());
  if (!status.ok()) return status;
  return Convert(response);
}

std::vector<absl::StatusOr<KvResult>> EtcdClient::Impl::CommitAllAt(size_t index,
                                                                    absl::Span<const KvTxn> txns,
                                                                    size_t in_flight) {
  struct Sent {
    grpc::ClientContext context;
    pb::TxnResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<pb::TxnResponse>> reader;
  };
  const Endpoint& endpoint = endpoints_[index];
  std::vector<absl::StatusOr<KvResult>> results(txns.size(), absl::UnavailableError("not sent"));
  std::vector<std::unique_ptr<Sent>> sent(txns.size());
  grpc::CompletionQueue queue;
  size_t next = 0, open = 0;
  bool failed = false;
  while (open > 0 || (next < txns.size() && !failed)) {
    for (; next < txns.size() && open < in_flight && !failed; ++next, ++open) {
      sent[next] = std::make_unique<Sent>();
      Prepare(sent[next]->context, options_.write_deadline, true);
      sent[next]->reader = endpoint.kv->AsyncTxn(&sent[next]->context, Convert(txns[next]), &queue);
      sent[next]->reader->Finish(&sent[next]->response, &sent[next]->status,
                                 reinterpret_cast<void*>(next));
    }
    void* tag = nullptr;
    bool ok = false;
    if (!queue.Next(&tag, &ok)) break;
    --open;
    const size_t done = reinterpret_cast<size_t>(tag);
    absl::Status status = Convert(sent[done]->status, endpoint.address);
    if (status.ok()) status = Check(sent[done]->response.header());
    failed |= !status.ok();
    if (status.ok()) {
      results[done] = Convert(sent[done]->response);
    } else {
      results[done] = status;
    }
    sent[done].reset();
  }
  queue.Shutdown();
  return results;
}

EtcdClient::EtcdClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EtcdClient::~EtcdClient() = default;

absl::StatusOr<std::unique_ptr<EtcdClient>> EtcdClient::Create(EtcdOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  if (absl::Status status = impl->Connect(); !status.ok()) return status;
  return std::unique_ptr<EtcdClient>(new EtcdClient(std::move(impl)));
}

// What was seen before this call must still be there in its answer.
absl::StatusOr<KvResult> EtcdClient::Commit(const KvTxn& txn) {
  const int64_t before = revision();
  const size_t tries = WritesNothing(txn) ? impl_->endpoints_.size() : 1;
  absl::StatusOr<KvResult> result = absl::UnavailableError("etcd was not asked");
  for (size_t i = 0; i < tries; ++i) {
    const size_t index = impl_->current();
    result = impl_->CommitAt(index, txn);
    if (!NoAnswer(result.status())) break;
    impl_->TurnFrom(index);
  }
  if (!result.ok()) return result;
  absl::MutexLock lock(&impl_->mutex_);
  if (!txn.stale && result->revision < before) {
    return absl::FailedPreconditionError(
        absl::StrCat("etcd is at revision ", result->revision, " but was at ", before,
                     ": it was restored from an older snapshot, and what was acknowledged since "
                     "may be missing"));
  }
  impl_->revision_ = std::max(impl_->revision_, result->revision);
  return result;
}

std::vector<absl::StatusOr<KvResult>> EtcdClient::CommitAll(absl::Span<const KvTxn> txns,
                                                            size_t in_flight) {
  const size_t index = impl_->current();
  auto results = impl_->CommitAllAt(index, txns, std::max<size_t>(in_flight, 1));
  bool answered = true;
  absl::MutexLock lock(&impl_->mutex_);
  for (const auto& result : results) {
    if (result.ok()) impl_->revision_ = std::max(impl_->revision_, result->revision);
    answered &= !NoAnswer(result.status());
  }
  if (!answered) impl_->TurnFrom(index);
  return results;
}

absl::Status EtcdClient::Compact(int64_t revision) {
  const size_t index = impl_->current();
  grpc::ClientContext context;
  Prepare(context, impl_->options_.deadline, true);
  pb::CompactionRequest request;
  request.set_revision(revision);
  pb::CompactionResponse response;
  const auto& endpoint = impl_->endpoints_[index];
  const grpc::Status done = endpoint.kv->Compact(&context, request, &response);
  if (absl::StrContains(done.error_message(), "compacted")) return absl::OkStatus();
  return Convert(done, endpoint.address);
}

uint64_t EtcdClient::cluster() const {
  absl::MutexLock lock(&impl_->mutex_);
  return impl_->cluster_;
}

int64_t EtcdClient::revision() const {
  absl::MutexLock lock(&impl_->mutex_);
  return impl_->revision_;
}

// ---- For operators

std::vector<EtcdMemberStatus> EtcdClient::Members() {
  std::vector<EtcdMemberStatus> members;
  for (const Impl::Endpoint& endpoint : impl_->endpoints_) {
    EtcdMemberStatus& member = members.emplace_back();
    member.endpoint = endpoint.address;
    grpc::ClientContext context;
    Prepare(context, impl_->options_.deadline, false);
    pb::StatusResponse response;
    member.status =
        Convert(endpoint.maintenance->Status(&context, {}, &response), endpoint.address);
    if (!member.status.ok()) continue;
    member.version = response.version();
    member.leads = response.leader() != 0 && response.leader() == response.header().member_id();
    member.bytes = response.db_size();
    member.bytes_in_use = response.db_size_in_use();
    member.errors.assign(response.errors().begin(), response.errors().end());
  }
  return members;
}

absl::Status EtcdClient::DisarmNoSpace() {
  const auto& endpoint = impl_->endpoints_[impl_->current()];
  pb::AlarmRequest request;
  request.set_action(pb::AlarmRequest::GET);
  pb::AlarmResponse found;
  {
    grpc::ClientContext context;
    Prepare(context, impl_->options_.write_deadline, true);
    const grpc::Status asked = endpoint.maintenance->Alarm(&context, request, &found);
    if (!asked.ok()) return Convert(asked, endpoint.address);
  }
  for (const pb::AlarmMember& alarm : found.alarms()) {
    if (alarm.alarm() != pb::NOSPACE) continue;
    request.set_action(pb::AlarmRequest::DEACTIVATE);
    request.set_member_id(alarm.member_id());
    request.set_alarm(pb::NOSPACE);
    grpc::ClientContext context;
    Prepare(context, impl_->options_.write_deadline, true);
    pb::AlarmResponse done;
    const grpc::Status disarmed = endpoint.maintenance->Alarm(&context, request, &done);
    if (!disarmed.ok()) return Convert(disarmed, endpoint.address);
  }
  return absl::OkStatus();
}

absl::Status EtcdClient::Defragment(const std::string& address) {
  for (const Impl::Endpoint& endpoint : impl_->endpoints_) {
    if (endpoint.address != address) continue;
    grpc::ClientContext context;
    Prepare(context, kDefragmentDeadline, false);
    pb::DefragmentResponse response;
    return Convert(endpoint.maintenance->Defragment(&context, {}, &response), address);
  }
  return absl::NotFoundError(absl::StrCat(address, ": not one of etcd's endpoints"));
}

}  // namespace berth
