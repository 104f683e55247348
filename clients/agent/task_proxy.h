// Forwards the calls of one task to berthd, as bytes: what a call says is for berthd to judge. Only
// methods for tasks get through, because berthd sees the agent's certificate.
#ifndef BERTH_CLIENTS_AGENT_TASK_PROXY_H_
#define BERTH_CLIENTS_AGENT_TASK_PROXY_H_

#include <grpcpp/channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace berth {

inline constexpr int kMostTaskCalls = 256;  // at once

class TaskProxy final : public grpc::CallbackGenericService {
 public:
  // The metadata that names the task (EncodeTaskCall); UNAVAILABLE without a session. From any
  // thread.
  using Credential = std::function<absl::StatusOr<std::string>()>;

  // `channel`: to berthd.
  TaskProxy(const std::shared_ptr<grpc::Channel>& channel, Credential credential)
      : stub_(channel), credential_(std::move(credential)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  grpc::Status Prepare(const std::string& method, grpc::ClientContext* onward);

  grpc::GenericStub stub_;
  const Credential credential_;
  const std::shared_ptr<std::atomic<int>> calls_ = std::make_shared<std::atomic<int>>(0);
};

// "JobService.GetJob" of "/berth.v1.JobService/GetJob"; "" for methods of others.
std::string MethodOfPath(const std::string& path);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_TASK_PROXY_H_
