#include "clients/agent/task_proxy.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "support/clock.h"
#include "support/errors.h"
#include "support/task_call.h"

namespace berth {
namespace {

using grpc::ByteBuffer;

class RefusedCall final : public grpc::ServerGenericBidiReactor {
 public:
  explicit RefusedCall(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

// One call: each message is written before the next is read, in both directions, so at most one is
// held for each. The task's side and berthd's side live until their OnDone; the last one releases
// the call.
class ForwardedCall final : public std::enable_shared_from_this<ForwardedCall> {
 public:
  ForwardedCall(std::unique_ptr<grpc::ClientContext> context,
                std::shared_ptr<std::atomic<int>> calls)
      : context_(std::move(context)), calls_(std::move(calls)), task_(this), server_(this) {
    ++*calls_;
  }
  ~ForwardedCall() { --*calls_; }

  static grpc::ServerGenericBidiReactor* Begin(std::shared_ptr<ForwardedCall> call,
                                               grpc::GenericStub& stub, const std::string& method) {
    call->task_.self = call;
    call->server_.self = call;
    stub.PrepareBidiStreamingCall(call->context_.get(), method, {}, &call->server_);
    call->server_.StartRead(&call->down_);
    // Until EndUp and EndDown: writes and reads come from the other side's callbacks, too.
    call->server_.AddMultipleHolds(2);
    call->task_.StartRead(&call->up_);
    call->server_.StartCall();
    return &call->task_;
  }

 private:
  struct TaskSide final : grpc::ServerGenericBidiReactor {
    explicit TaskSide(ForwardedCall* of) : call(of) {}
    void OnReadDone(bool ok) override { call->OnTaskRead(ok); }
    void OnWriteDone(bool ok) override { call->OnTaskWritten(ok); }
    void OnCancel() override { call->OnTaskCancelled(); }
    void OnDone() override { std::exchange(self, nullptr).reset(); }
    ForwardedCall* const call;
    std::shared_ptr<ForwardedCall> self;
  };
  struct ServerSide final : grpc::ClientBidiReactor<ByteBuffer, ByteBuffer> {
    explicit ServerSide(ForwardedCall* of) : call(of) {}
    void OnReadDone(bool ok) override { call->OnServerRead(ok); }
    void OnWriteDone(bool ok) override { call->OnServerWritten(ok); }
    void OnDone(const grpc::Status& status) override {
      call->OnServerDone(status);
      std::exchange(self, nullptr).reset();
    }
    ForwardedCall* const call;
    std::shared_ptr<ForwardedCall> self;
  };

  void OnTaskRead(bool ok) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (!up_open_) return;
    if (ok) return server_.StartWrite(&up_);
    server_.StartWritesDone();
    EndUp();
  }
  void OnServerWritten(bool ok) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (!up_open_) return;
    if (!ok) return EndUp();
    up_.Clear();
    task_.StartRead(&up_);
  }
  void OnServerRead(bool ok) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (!ok) {
      EndUp();
      return EndDown();
    }
    writing_ = true;
    task_.StartWrite(&down_);
  }
  void OnTaskWritten(bool ok) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (ended_.has_value()) return Finish();
    if (!ok) {
      context_->TryCancel();
      return EndDown();
    }
    down_.Clear();
    server_.StartRead(&down_);
  }
  void OnTaskCancelled() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    EndUp();
    context_->TryCancel();
  }
  void OnServerDone(const grpc::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    up_open_ = false;
    ended_ = status;
    if (!writing_) Finish();
  }

  // Nothing more is written to berthd.
  void EndUp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(up_open_, false)) server_.RemoveHold();
  }
  // Nothing more is read from it.
  void EndDown() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(down_open_, false)) server_.RemoveHold();
  }
  void Finish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { task_.Finish(*ended_); }

  const std::unique_ptr<grpc::ClientContext> context_;
  const std::shared_ptr<std::atomic<int>> calls_;
  absl::Mutex mutex_;
  bool up_open_ ABSL_GUARDED_BY(mutex_) = true;
  bool down_open_ ABSL_GUARDED_BY(mutex_) = true;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;               // to the task
  std::optional<grpc::Status> ended_ ABSL_GUARDED_BY(mutex_);  // berthd's answer is complete
  ByteBuffer up_, down_;                                       // of the read or write in progress
  TaskSide task_;
  ServerSide server_;
};

}  // namespace

std::string MethodOfPath(const std::string& path) {
  absl::string_view rest = path;
  const size_t slash = rest.rfind('/');
  if (!absl::ConsumePrefix(&rest, "/berth.v1.") || slash < path.size() - rest.size()) return "";
  return absl::StrCat(rest.substr(0, rest.rfind('/')), ".", rest.substr(rest.rfind('/') + 1));
}

TaskProxy::Verdict TaskProxy::Count() {
  const absl::Duration now = SystemClock().Steady();
  absl::MutexLock lock(&mutex_);
  const double seconds = absl::ToDoubleSeconds(now - counted_);
  if (seconds >= 1) refused_ = 0;
  credit_ = std::min(kTaskCallsTogether, credit_ + seconds * kTaskCallsPerSecond);
  counted_ = now;
  if (credit_ >= 1) {
    credit_ -= 1;
    return Verdict::kTake;
  }
  return ++refused_ < kTaskCallsOfFlood ? Verdict::kRefuse : Verdict::kFlood;
}

grpc::Status TaskProxy::Prepare(const std::string& method, grpc::ClientContext* onward,
                                grpc::GenericStub** stub) {
  const Verdict verdict = Count();
  if (verdict == Verdict::kFlood) flood_();
  if (verdict != Verdict::kTake) {
    return ToGrpcStatus(absl::ResourceExhaustedError(absl::StrCat(
        "the task makes more than ", kTaskCallsPerSecond, " calls a second; call less often")));
  }
  if (!IsTaskMethod(MethodOfPath(method))) {
    return ToGrpcStatus(absl::PermissionDeniedError(absl::StrCat(
        "tasks may not call ", method, ": a task may read its own job, and run commands in it")));
  }
  if (*calls_ >= kMostTaskCalls) {
    return ToGrpcStatus(absl::ResourceExhaustedError(
        absl::StrCat("the task makes ", kMostTaskCalls, " calls already")));
  }
  const absl::StatusOr<Credential> credential = credential_();
  if (!credential.ok()) return ToGrpcStatus(credential.status());
  onward->AddMetadata(kTaskMetadata, credential->text);
  *stub = &stubs_.at(credential->server);
  return grpc::Status::OK;
}

grpc::ServerGenericBidiReactor* TaskProxy::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  auto onward = std::make_unique<grpc::ClientContext>();
  onward->set_deadline(context->deadline());
  grpc::GenericStub* stub = nullptr;
  const grpc::Status status = Prepare(context->method(), onward.get(), &stub);
  if (!status.ok()) return new RefusedCall(status);
  return ForwardedCall::Begin(std::make_shared<ForwardedCall>(std::move(onward), calls_), *stub,
                              context->method());
}

}  // namespace berth
