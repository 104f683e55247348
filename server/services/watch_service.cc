#include "server/services/watch_service.h"

#include <memory>
#include <utility>

#include "server/validation/findings.h"
#include "server/validation/text.h"
#include "support/errors.h"

namespace berth {
namespace {

constexpr int kMaxWatchedJobs = 10'000;

absl::Status Validate(const v1::WatchRequest& request) {
  Findings findings;
  const FieldPath root;
  if (request.jobs_size() > kMaxWatchedJobs) {
    findings.Invalid({root, "jobs"}, "at most 10000; leave it empty for all");
    return findings.ToStatus();
  }
  for (int i = 0; i < request.jobs_size(); ++i) {
    CheckDnsLabel({root, "jobs", i}, request.jobs(i), findings);
  }
  if (request.no_jobs() && !request.jobs().empty()) {
    findings.Invalid({root, "jobs"}, "not together with no_jobs");
  }
  if (request.no_jobs() && !request.nodes() && !request.queues() && !request.hyper_nodes()) {
    findings.Invalid({root, "no_jobs"},
                     "leaves nothing to watch: set nodes, queues or hyper_nodes");
  }
  return findings.ToStatus();
}

class Stream;

// The hub's end of a stream. The stream lives until OnDone, which comes only after Finish. The hub
// calls one at a time, Finish last, so the stream exists during every call.
class StreamSink final : public WatchSink {
 public:
  explicit StreamSink(Stream* stream) : stream_(stream) {}
  void Send(v1::WatchResponse response) override;
  void Finish(const absl::Status& status) override;
  void Cut(const absl::Status& status) override;

 private:
  Stream* const stream_;
};

class Stream final : public grpc::ServerWriteReactor<v1::WatchResponse> {
 public:
  Stream(WatchHub* hub, grpc::CallbackServerContext* context)
      : hub_(hub), context_(context), id_(hub->NewId()) {}

  WatchHub::WatcherId id() const { return id_; }
  void Write(v1::WatchResponse response) {
    message_ = std::move(response);
    StartWrite(&message_);
  }

  // A client that does not read would not read a final status either. `this` may be gone
  // afterwards.
  void Cut(const absl::Status& status) {
    context_->TryCancel();
    Finish(ToGrpcStatus(status));
  }

  void OnWriteDone(bool ok) override { ok ? hub_->Written(id_) : hub_->Remove(id_); }
  // If this comes before the hub knows the watcher, the first write fails and triggers it again.
  void OnCancel() override { hub_->Remove(id_); }
  void OnDone() override { delete this; }

 private:
  WatchHub* const hub_;
  grpc::CallbackServerContext* const context_;
  const WatchHub::WatcherId id_;
  v1::WatchResponse message_;  // of the current write
};

void StreamSink::Send(v1::WatchResponse response) { stream_->Write(std::move(response)); }
void StreamSink::Finish(const absl::Status& status) { stream_->Finish(ToGrpcStatus(status)); }
void StreamSink::Cut(const absl::Status& status) { stream_->Cut(status); }

}  // namespace

grpc::ServerWriteReactor<v1::WatchResponse>* WatchService::Watch(
    grpc::CallbackServerContext* context, const v1::WatchRequest* request) {
  auto* stream = new Stream(hub_, context);
  if (absl::Status status = Validate(*request); !status.ok()) {
    stream->Finish(ToGrpcStatus(status));
  } else {
    hub_->Add(stream->id(), *request, std::make_shared<StreamSink>(stream));
  }
  return stream;
}

}  // namespace berth
