#include "server/services/watch_service.h"

#include <memory>
#include <utility>

#include "server/validation/findings.h"
#include "server/validation/series.h"
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
    CheckJobReference({root, "jobs", i}, request.jobs(i), findings);
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

// What a watch needs as a whole: then it is refused at once, and not only silent.
absl::Status MayWatch(const ClusterState& state, Rights& rights, const v1::WatchRequest& request,
                      Time now) {
  absl::Status status = Admit(state, rights, Rpc::kWatchServiceWatch, now);
  if (!status.ok() || (!request.nodes() && !request.hyper_nodes())) return status;
  return PermitVerb(state, rights, Verb::kReadCluster, kRootQueue, "watch nodes");
}

using Events = google::protobuf::RepeatedPtrField<v1::ChangeEvent>;

// One step under the reader lock.
void ShowSome(const ClusterState& state, Rights& rights,
              const std::vector<const store::v1::LogEvent*>& from, int begin, int end,
              Events* events, int* kept) {
  for (int i = begin; i < end; ++i) {
    if (!Show(state, rights, *from[static_cast<size_t>(i)], events->Mutable(i))) continue;
    if (*kept != i) events->SwapElements(*kept, i);
    ++*kept;
  }
}

// Who may see all of it is looked up first: most watchers do.
absl::Status ShowTo(Loop& loop, Rights& rights, const std::vector<const store::v1::LogEvent*>& from,
                    Events* events) {
  const auto reads_all = [&](const ClusterState& state, uint64_t) {
    return rights.SeesAll(state) && rights.OnCluster(state, Verb::kReadJob);
  };
  if (events->empty() || loop.Read(reads_all)) return absl::OkStatus();
  int kept = 0;
  for (int begin = 0; begin < events->size(); begin += static_cast<int>(kMaxRowsPerStep)) {
    const int end = std::min(events->size(), begin + static_cast<int>(kMaxRowsPerStep));
    loop.Read([&](const ClusterState& state, uint64_t) {
      ShowSome(state, rights, from, begin, end, events, &kept);
      return 0;
    });
  }
  events->DeleteSubrange(kept, events->size() - kept);
  return absl::OkStatus();
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
  void Hold(UserShares::Part part) { part_ = std::move(part); }
  // The stream ends when `may` says so.
  void EndWith(OpenStreams* streams, OpenStreams::May may) {
    entry_ = streams->Add(std::move(may), [hub = hub_, id = id_](const absl::Status& status) {
      hub->Remove(id, status);
    });
  }
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
  UserShares::Part part_;
  std::unique_ptr<OpenStreams::Entry> entry_;
  v1::WatchResponse message_;  // of the current write
};

void StreamSink::Send(v1::WatchResponse response) { stream_->Write(std::move(response)); }
void StreamSink::Finish(const absl::Status& status) { stream_->Finish(ToGrpcStatus(status)); }
void StreamSink::Cut(const absl::Status& status) { stream_->Cut(status); }

}  // namespace

grpc::ServerWriteReactor<v1::WatchResponse>* WatchService::Watch(
    grpc::CallbackServerContext* context, const v1::WatchRequest* request) {
  auto* stream = new Stream(hub_, context);
  const Call call = context_.CallOf(Rpc::kWatchServiceWatch, *context);
  absl::StatusOr<UserShares::Part> part = context_.shares->BeginStream(*call.caller);
  if (!part.ok()) {
    stream->Finish(ToGrpcStatus(part.status()));
    return stream;
  }
  stream->Hold(*std::move(part));
  const auto may = [request = *request, caller = call.caller,
                    clock = context_.clock](const ClusterState& state) {
    Rights rights(caller);
    return MayWatch(state, rights, request, clock->Now());
  };
  stream->EndWith(streams_, may);
  absl::Status status =
      context_.loop->Read([&](const ClusterState& state, uint64_t) { return may(state); });
  if (status.ok()) status = Validate(*request);
  if (!status.ok()) {
    context_.NoteIfRefused(call, status);
    stream->Finish(ToGrpcStatus(status));
    return stream;
  }
  auto rights = std::make_shared<Rights>(call.caller);
  hub_->Add(stream->id(), *request, std::make_shared<StreamSink>(stream),
            [rights, loop = context_.loop](Events* events, const auto& from) {
              return ShowTo(*loop, *rights, from, events);
            });
  return stream;
}

}  // namespace berth
