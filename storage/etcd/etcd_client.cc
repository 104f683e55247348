#include "storage/etcd/etcd_client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "etcd/etcd.grpc.pb.h"
#include "storage/etcd/etcd_messages.h"

namespace berth {
namespace {

namespace pb = etcdserverpb;

constexpr int kMaxAnswer = 64 << 20;
constexpr int kReconnectMs = 100, kMaxReconnectMs = 1000;
// A connection to a machine that is gone without a word ends. etcd allows a ping each 5 s.
constexpr int kKeepaliveMs = 10'000, kKeepaliveTimeoutMs = 2000;
constexpr absl::Duration kPatience = absl::Milliseconds(100);  // with an endpoint that failed
constexpr absl::Duration kDefragmentDeadline = absl::Minutes(5);

void Prepare(grpc::ClientContext& context, absl::Time deadline, bool needs_leader) {
  context.set_deadline(absl::ToChronoTime(deadline));
  // A member that is cut off from the others refuses at once.
  if (needs_leader) context.AddMetadata("hasleader", "true");
}

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxAnswer);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  return arguments;
}

// Whether there is a connection, after waiting for one. Without waiting none would ever be made in
// a process where nothing else waits on gRPC: calls fail at once while there is none, and
// connections get on only while something waits.
bool AwaitConnection(grpc::Channel& channel, absl::Time deadline) {
  grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
  // It stays in this state during further attempts.
  const bool failed_before = state == GRPC_CHANNEL_TRANSIENT_FAILURE;
  if (failed_before) deadline = std::min(deadline, absl::Now() + kPatience);
  while (state != GRPC_CHANNEL_READY) {
    if (!failed_before && state == GRPC_CHANNEL_TRANSIENT_FAILURE) return false;
    if (!channel.WaitForStateChange(state, absl::ToChronoTime(deadline))) return false;
    state = channel.GetState(/*try_to_connect=*/true);
  }
  return true;
}

// HOST:PORT of an endpoint.
absl::StatusOr<std::string> Target(absl::string_view endpoint, bool tls) {
  absl::string_view rest = endpoint;
  if (absl::ConsumePrefix(&rest, "http://") && tls) {
    return absl::InvalidArgumentError(absl::StrCat(
        "etcd's endpoint ", endpoint, " is plain text, but TLS files are given: use https://"));
  }
  if (absl::ConsumePrefix(&rest, "https://") && !tls) {
    return absl::InvalidArgumentError(
        absl::StrCat("etcd's endpoint ", endpoint, " needs TLS files"));
  }
  absl::ConsumeSuffix(&rest, "/");
  if (rest.empty() || rest.find('/') != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("etcd's endpoint \"", endpoint, "\" is not HOST:PORT"));
  }
  return std::string(rest);
}

}  // namespace

class EtcdClient::Impl {
 public:
  struct Endpoint {
    std::string address;  // as configured
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<pb::KV::Stub> kv;
    std::unique_ptr<pb::Maintenance::Stub> maintenance;
    std::unique_ptr<pb::Cluster::Stub> cluster;
  };

  explicit Impl(EtcdOptions options)
      : options_(std::move(options)),
        cluster_(options_.cluster),
        revision_(options_.least_revision) {}

  absl::Status Connect();

  // Asks the endpoints in turn, beginning with the one that answered last, until one answers. One
  // that is not `repeatable` goes on only if it was not sent.
  using Call = absl::FunctionRef<grpc::Status(const Endpoint&, grpc::ClientContext&)>;
  absl::Status Ask(absl::Duration deadline, bool needs_leader, bool repeatable, Call call);

  absl::StatusOr<KvResult> Commit(const KvTxn& txn);
  std::vector<absl::StatusOr<KvResult>> CommitAll(absl::Span<const KvTxn> txns, size_t in_flight);

  // Whether this is the etcd of before, and it knows what was seen up to `least`.
  absl::Status Check(const pb::ResponseHeader& header, int64_t least) ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t cluster() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return cluster_;
  }
  int64_t revision() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return revision_;
  }

  const EtcdOptions& options() const { return options_; }
  const std::vector<Endpoint>& endpoints() const { return endpoints_; }

 private:
  using Results = std::vector<absl::StatusOr<KvResult>>;
  class Pipeline;

  static absl::Status CannotConnect(const Endpoint& endpoint) {
    return absl::UnavailableError(absl::StrCat("etcd at ", endpoint.address, ": cannot connect"));
  }
  // The endpoint has not answered: begins with the next one from now on.
  void TurnFrom(size_t index) {
    size_t expected = index;
    current_.compare_exchange_strong(expected, (index + 1) % endpoints_.size());
  }

  const EtcdOptions options_;
  std::vector<Endpoint> endpoints_;
  mutable absl::Mutex mutex_;
  uint64_t cluster_ ABSL_GUARDED_BY(mutex_);
  int64_t revision_ ABSL_GUARDED_BY(mutex_);
  std::atomic<size_t> current_{0};
};

absl::Status EtcdClient::Impl::Connect() {
  if (options_.endpoints.empty()) return absl::InvalidArgumentError("etcd needs an endpoint");
  const auto credentials = MakeLastingChannelCredentials(options_.tls);
  if (!credentials.ok()) return credentials.status();
  for (const std::string& address : options_.endpoints) {
    const absl::StatusOr<std::string> target = Target(address, !options_.tls.empty());
    if (!target.ok()) return target.status();
    const auto channel = grpc::CreateCustomChannel(*target, *credentials, Arguments());
    endpoints_.push_back({.address = address,
                          .channel = channel,
                          .kv = pb::KV::NewStub(channel),
                          .maintenance = pb::Maintenance::NewStub(channel),
                          .cluster = pb::Cluster::NewStub(channel)});
  }
  return absl::OkStatus();
}

absl::Status EtcdClient::Impl::Check(const pb::ResponseHeader& header, int64_t least) {
  if (header.cluster_id() == 0 || header.revision() <= 0) {
    return absl::FailedPreconditionError("this is not an etcd: its answer has no header");
  }
  absl::MutexLock lock(&mutex_);
  if (cluster_ == 0) cluster_ = header.cluster_id();
  if (cluster_ != header.cluster_id()) {
    return absl::FailedPreconditionError(absl::StrCat("this is another etcd than before: cluster ",
                                                      absl::Hex(header.cluster_id()), ", not ",
                                                      absl::Hex(cluster_)));
  }
  if (header.revision() < least) {
    return absl::FailedPreconditionError(
        absl::StrCat("etcd is at revision ", header.revision(), " but was at ", least,
                     ": it was restored from an older snapshot, and what was acknowledged since "
                     "may be missing"));
  }
  revision_ = std::max(revision_, header.revision());
  return absl::OkStatus();
}

absl::Status EtcdClient::Impl::Ask(absl::Duration deadline, bool needs_leader, bool repeatable,
                                   Call call) {
  const size_t first = current_.load();
  absl::Status status;
  for (size_t i = 0; i < endpoints_.size(); ++i) {
    const size_t index = (first + i) % endpoints_.size();
    const Endpoint& endpoint = endpoints_[index];
    const absl::Time end = absl::Now() + deadline;
    // A read is sent anyway: its error has the reason.
    const bool send = AwaitConnection(*endpoint.channel, end) || repeatable;
    if (send) {
      grpc::ClientContext context;
      Prepare(context, end, needs_leader);
      status = StatusFromEtcd(call(endpoint, context), endpoint.address);
      if (!IsNoAnswer(status)) return status;
    } else {
      status = CannotConnect(endpoint);
    }
    TurnFrom(index);
    if (send && !repeatable) return status;
  }
  return status;
}

// What was seen before this call must still be there in its answer.
absl::StatusOr<KvResult> EtcdClient::Impl::Commit(const KvTxn& txn) {
  if (absl::Status valid = CheckTxn(txn); !valid.ok()) return valid;
  const int64_t before = revision();
  const pb::TxnRequest request = EtcdRequest(txn);
  pb::TxnResponse response;
  absl::Status status = Ask(options_.deadline, !txn.stale, WritesNothing(txn),
                            [&](const Endpoint& endpoint, grpc::ClientContext& context) {
                              return endpoint.kv->Txn(&context, request, &response);
                            });
  if (status.ok()) status = Check(response.header(), txn.stale ? 0 : before);
  if (!status.ok()) return status;
  return ResultFrom(txn, response);
}

// Transactions under way at one endpoint.
class EtcdClient::Impl::Pipeline {
 public:
  Pipeline(Impl* impl, const Endpoint* endpoint, absl::Span<const KvTxn> txns, Results* results)
      : impl_(*impl),
        endpoint_(*endpoint),
        txns_(txns),
        results_(*results),
        least_(impl->revision()) {}

  // Until one fails. False: some were not answered.
  bool Run(size_t in_flight) {
    size_t next = 0, open = 0;
    while (open > 0 || (next < txns_.size() && !failed_)) {
      for (; next < txns_.size() && open < in_flight && !failed_; ++next, ++open) Send(next);
      void* tag = nullptr;
      bool ok = false;
      if (!queue_.Next(&tag, &ok)) break;
      --open;
      const std::unique_ptr<Sent> sent(static_cast<Sent*>(tag));
      Finish(*sent);
    }
    queue_.Shutdown();
    return !unanswered_;
  }

 private:
  struct Sent {
    size_t index = 0;
    grpc::ClientContext context;
    pb::TxnResponse response;
    grpc::Status status;
    std::unique_ptr<grpc::ClientAsyncResponseReader<pb::TxnResponse>> reader;
  };

  void Send(size_t index) {
    auto* sent = new Sent{.index = index};  // Run's when the queue returns it
    const KvTxn& txn = txns_[index];
    Prepare(sent->context, absl::Now() + impl_.options_.write_deadline, !txn.stale);
    sent->reader = endpoint_.kv->AsyncTxn(&sent->context, EtcdRequest(txn), &queue_);
    sent->reader->Finish(&sent->response, &sent->status, sent);
  }

  void Finish(Sent& sent) {
    const KvTxn& txn = txns_[sent.index];
    absl::Status status = StatusFromEtcd(sent.status, endpoint_.address);
    unanswered_ |= IsNoAnswer(status);
    if (status.ok()) status = impl_.Check(sent.response.header(), txn.stale ? 0 : least_);
    absl::StatusOr<KvResult>& result = results_[sent.index];
    if (status.ok()) {
      result = ResultFrom(txn, sent.response);
    } else {
      result = status;
    }
    failed_ |= !result.ok();
  }

  Impl& impl_;
  const Endpoint& endpoint_;
  const absl::Span<const KvTxn> txns_;
  Results& results_;
  const int64_t least_;
  grpc::CompletionQueue queue_;
  bool failed_ = false, unanswered_ = false;
};

std::vector<absl::StatusOr<KvResult>> EtcdClient::Impl::CommitAll(absl::Span<const KvTxn> txns,
                                                                  size_t in_flight) {
  Results results(txns.size(), absl::UnavailableError("etcd: not sent, as one before it failed"));
  for (size_t i = 0; i < txns.size(); ++i) {
    absl::Status valid = CheckTxn(txns[i]);
    if (valid.ok()) continue;
    results[i] = std::move(valid);
    return results;
  }
  const size_t first = current_.load();
  for (size_t i = 0; i < endpoints_.size(); ++i) {
    const size_t index = (first + i) % endpoints_.size();
    const Endpoint& endpoint = endpoints_[index];
    if (!AwaitConnection(*endpoint.channel, absl::Now() + options_.write_deadline)) {
      TurnFrom(index);
      if (!txns.empty()) results[0] = CannotConnect(endpoint);
      continue;
    }
    Pipeline pipeline(this, &endpoint, txns, &results);
    if (!pipeline.Run(std::max<size_t>(in_flight, 1))) TurnFrom(index);
    break;
  }
  return results;
}

EtcdClient::EtcdClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EtcdClient::~EtcdClient() = default;

absl::StatusOr<std::unique_ptr<EtcdClient>> EtcdClient::Create(EtcdOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  if (absl::Status status = impl->Connect(); !status.ok()) return status;
  return std::unique_ptr<EtcdClient>(new EtcdClient(std::move(impl)));
}

absl::StatusOr<KvResult> EtcdClient::Commit(const KvTxn& txn) { return impl_->Commit(txn); }

std::vector<absl::StatusOr<KvResult>> EtcdClient::CommitAll(absl::Span<const KvTxn> txns,
                                                            size_t in_flight) {
  return impl_->CommitAll(txns, in_flight);
}

absl::Status EtcdClient::Compact(int64_t revision) {
  pb::CompactionRequest request;
  request.set_revision(revision);
  pb::CompactionResponse response;
  bool before = false;
  absl::Status status =
      impl_->Ask(impl_->options().deadline, true, /*repeatable=*/true,
                 [&](const Impl::Endpoint& endpoint, grpc::ClientContext& context) {
                   const grpc::Status done = endpoint.kv->Compact(&context, request, &response);
                   before = done.error_code() == grpc::StatusCode::OUT_OF_RANGE &&
                            done.error_message().find("compacted") != std::string::npos;
                   return before ? grpc::Status::OK : done;
                 });
  if (!status.ok() || before) return status;
  return impl_->Check(response.header(), 0);
}

uint64_t EtcdClient::cluster() const { return impl_->cluster(); }
int64_t EtcdClient::revision() const { return impl_->revision(); }

// ---- For operators

std::vector<EtcdMemberStatus> EtcdClient::Members() {
  std::vector<EtcdMemberStatus> members;
  for (const Impl::Endpoint& endpoint : impl_->endpoints()) {
    EtcdMemberStatus& member = members.emplace_back();
    member.endpoint = endpoint.address;
    const absl::Time deadline = absl::Now() + impl_->options().deadline;
    AwaitConnection(*endpoint.channel, deadline);  // if not, the call says why
    grpc::ClientContext context;
    Prepare(context, deadline, false);
    pb::StatusResponse response;
    member.status =
        StatusFromEtcd(endpoint.maintenance->Status(&context, {}, &response), endpoint.address);
    if (!member.status.ok()) continue;
    member.version = response.version();
    member.member = response.header().member_id();
    member.leads = response.leader() != 0 && response.leader() == member.member;
    member.raft_term = response.raft_term();
    member.bytes = response.db_size();
    member.bytes_in_use = response.db_size_in_use();
    member.errors.assign(response.errors().begin(), response.errors().end());
  }
  return members;
}

absl::StatusOr<std::vector<EtcdAlarm>> EtcdClient::Alarms() {
  pb::AlarmRequest request;
  request.set_action(pb::AlarmRequest::GET);
  pb::AlarmResponse response;
  absl::Status status =
      impl_->Ask(impl_->options().write_deadline, true, /*repeatable=*/true,
                 [&](const Impl::Endpoint& endpoint, grpc::ClientContext& context) {
                   return endpoint.maintenance->Alarm(&context, request, &response);
                 });
  if (!status.ok()) return status;
  std::vector<EtcdAlarm> alarms;
  for (const pb::AlarmMember& alarm : response.alarms()) {
    using Kind = EtcdAlarm::Kind;
    alarms.push_back({.member = alarm.member_id(),
                      .kind = alarm.alarm() == pb::NOSPACE   ? Kind::kNoSpace
                              : alarm.alarm() == pb::CORRUPT ? Kind::kCorrupt
                                                             : Kind::kOther});
  }
  return alarms;
}

absl::StatusOr<std::vector<EtcdPeer>> EtcdClient::Peers() {
  pb::MemberListResponse response;
  absl::Status status =
      impl_->Ask(impl_->options().deadline, true, /*repeatable=*/true,
                 [&](const Impl::Endpoint& endpoint, grpc::ClientContext& context) {
                   return endpoint.cluster->MemberList(&context, {}, &response);
                 });
  if (!status.ok()) return status;
  std::vector<EtcdPeer> peers;
  for (const pb::Member& member : response.members()) {
    peers.push_back({.member = member.id(),
                     .name = member.name(),
                     .client_urls = {member.client_urls().begin(), member.client_urls().end()},
                     .learner = member.is_learner()});
  }
  return peers;
}

absl::Status EtcdClient::DisarmNoSpace() {
  const absl::StatusOr<std::vector<EtcdAlarm>> alarms = Alarms();
  if (!alarms.ok()) return alarms.status();
  for (const EtcdAlarm& alarm : *alarms) {
    if (alarm.kind != EtcdAlarm::Kind::kNoSpace) continue;
    pb::AlarmRequest request;
    request.set_action(pb::AlarmRequest::DEACTIVATE);
    request.set_member_id(alarm.member);
    request.set_alarm(pb::NOSPACE);
    pb::AlarmResponse response;
    absl::Status status =
        impl_->Ask(impl_->options().write_deadline, true, /*repeatable=*/true,
                   [&](const Impl::Endpoint& endpoint, grpc::ClientContext& context) {
                     return endpoint.maintenance->Alarm(&context, request, &response);
                   });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status EtcdClient::Defragment(const std::string& address) {
  for (const Impl::Endpoint& endpoint : impl_->endpoints()) {
    if (endpoint.address != address) continue;
    AwaitConnection(*endpoint.channel, absl::Now() + impl_->options().deadline);
    grpc::ClientContext context;
    Prepare(context, absl::Now() + kDefragmentDeadline, false);
    pb::DefragmentResponse response;
    return StatusFromEtcd(endpoint.maintenance->Defragment(&context, {}, &response), address);
  }
  return absl::NotFoundError(absl::StrCat(address, ": not one of etcd's endpoints"));
}

}  // namespace berth
