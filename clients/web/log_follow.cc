#include "clients/web/log_follow.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "berth/web/v1/api.pb.h"
#include "clients/web/connect_error.h"
#include "support/proto_json.h"

namespace berth::web {
namespace {

constexpr char kReadLogsMethod[] = "/berth.v1.JobService/ReadLogs";

// Between the page's stream and berthd's. At most one response is on its way to the page.
class LogFollow : public std::enable_shared_from_this<LogFollow> {
 public:
  explicit LogFollow(std::function<void()> ended)
      : page_(std::make_shared<EventStream>()), ended_(std::move(ended)) {}

  std::shared_ptr<EventStream> Begin(Upstream& upstream,
                                     const berth::v1::ReadLogsRequest& request) {
    const auto self = shared_from_this();
    // The page's stream must not own itself.
    const std::weak_ptr<LogFollow> weak = self;
    page_->OnDrained([weak] {
      if (const auto follow = weak.lock()) follow->Drained();
    });
    page_->OnGone([weak, ended = std::exchange(ended_, nullptr)] {
      if (const auto follow = weak.lock()) follow->Gone();
      ended();
    });
    auto stream = upstream.Open(
        {.method = kReadLogsMethod, .request = request.SerializeAsString(), .request_id = ""},
        [self](const std::string& bytes) { self->OnMessage(bytes); },
        [self](const absl::Status& status) { self->OnEnd(status); });
    {
      absl::MutexLock lock(&mutex_);
      stream_ = stream;
    }
    stream->Next();
    return page_;
  }

 private:
  void OnMessage(const std::string& bytes) ABSL_LOCKS_EXCLUDED(mutex_) {
    berth::v1::ReadLogsResponse response;
    if (!response.ParseFromString(bytes)) return;
    {
      absl::MutexLock lock(&mutex_);
      waiting_ = true;
    }
    if (!page_->Write(EventText("output", WriteJson(response)))) Gone();
  }
  void OnEnd(const absl::Status& status) {
    v1::StreamEnd end;
    if (!status.ok()) end.set_code(std::string(ConnectCode(status.code())));
    end.set_message(std::string(status.message()));
    page_->Write(EventText("end", WriteJson(end)));
    page_->Close();
    absl::MutexLock lock(&mutex_);
    stream_ = nullptr;
  }
  void Drained() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::shared_ptr<UpstreamStream> stream;
    {
      absl::MutexLock lock(&mutex_);
      if (std::exchange(waiting_, false)) stream = stream_;
    }
    if (stream != nullptr) stream->Next();
  }
  void Gone() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::shared_ptr<UpstreamStream> stream;
    {
      absl::MutexLock lock(&mutex_);
      stream = std::exchange(stream_, nullptr);
    }
    if (stream != nullptr) stream->Cancel();
  }

  const std::shared_ptr<EventStream> page_;
  std::function<void()> ended_;
  absl::Mutex mutex_;
  std::shared_ptr<UpstreamStream> stream_ ABSL_GUARDED_BY(mutex_);
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;  // a response is on its way to the page
};

}  // namespace

std::shared_ptr<EventStream> FollowLogs(const std::shared_ptr<Upstream>& upstream,
                                        const berth::v1::ReadLogsRequest& request,
                                        std::function<void()> ended) {
  return std::make_shared<LogFollow>(std::move(ended))->Begin(*upstream, request);
}

}  // namespace berth::web
