// Forwards the calls of one task to berthd, as bytes: what a call says is for berthd to judge. Only
// methods for tasks get through, because berthd sees the agent's certificate.
#ifndef BERTH_CLIENTS_AGENT_TASK_PROXY_H_
#define BERTH_CLIENTS_AGENT_TASK_PROXY_H_

#include <grpcpp/channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace berth {

inline constexpr int kMostTaskCalls = 256;  // at once
// Beyond these a task's calls are refused, and one that goes on and on loses its socket: each call
// that a client opens and resets at once costs gRPC memory.
inline constexpr double kTaskCallsPerSecond = 200;  // on average
inline constexpr double kTaskCallsTogether = 1000;
inline constexpr int kTaskCallsOfFlood = 5000;  // refused without a second of quiet

class TaskProxy final : public grpc::CallbackGenericService {
 public:
  // The metadata that names the task (EncodeTaskCall), and to which server it counts.
  struct Credential {
    std::string text;
    size_t server = 0;
  };
  // UNAVAILABLE without a session. From any thread.
  using GetCredential = std::function<absl::StatusOr<Credential>()>;

  // `servers`: channels to berthd, at least one. `flood`: called at least once if the task calls
  // too often; must not wait.
  TaskProxy(const std::vector<std::shared_ptr<grpc::Channel>>& servers, GetCredential credential,
            std::function<void()> flood)
      : stubs_(servers.begin(), servers.end()),
        credential_(std::move(credential)),
        flood_(std::move(flood)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  enum class Verdict { kTake, kRefuse, kFlood };
  Verdict Count() ABSL_LOCKS_EXCLUDED(mutex_);
  // `stub`: for the call.
  grpc::Status Prepare(const std::string& method, grpc::ClientContext* onward,
                       grpc::GenericStub** stub);

  std::deque<grpc::GenericStub> stubs_;  // by server
  const GetCredential credential_;
  const std::function<void()> flood_;
  absl::Mutex mutex_;
  double credit_ ABSL_GUARDED_BY(mutex_) = kTaskCallsTogether;
  absl::Duration counted_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();  // steady
  int refused_ ABSL_GUARDED_BY(mutex_) = 0;
  const std::shared_ptr<std::atomic<int>> calls_ = std::make_shared<std::atomic<int>>(0);
};

// "JobService.GetJob" of "/berth.v1.JobService/GetJob"; "" for methods of others.
std::string MethodOfPath(const std::string& path);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_TASK_PROXY_H_
