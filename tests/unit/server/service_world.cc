#include "tests/unit/server/service_world.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "server/config/config.h"
#include "support/log.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {

class BorrowedStore final : public Store {
 public:
  explicit BorrowedStore(Store* store) : store_(*store) {}
  absl::Status Load(
      absl::FunctionRef<absl::Status(RecordKind, absl::string_view, absl::string_view)> visit)
      override {
    return store_.Load(visit);
  }
  uint64_t LastSequence() const override { return store_.LastSequence(); }
  std::string ClusterId() const override { return store_.ClusterId(); }
  uint64_t Incarnation() const override { return store_.Incarnation(); }
  uint32_t Format() const override { return store_.Format(); }
  absl::Status Append(const std::vector<const Batch*>& batches) override {
    return store_.Append(batches);
  }
  absl::StatusOr<std::string> Read(RecordKind kind, absl::string_view key) const override {
    return store_.Read(kind, key);
  }
  absl::Status NoteRead(absl::Status status) const override { return store_.NoteRead(status); }
  absl::StatusOr<std::vector<LogEntry>> ReadLog(uint64_t after, size_t limit) const override {
    return store_.ReadLog(after, limit);
  }
  absl::Status TrimLog(uint64_t sequence) override { return store_.TrimLog(sequence); }

 private:
  Store& store_;
};

ServiceWorld::ServiceWorld(const std::function<void(config::v1::Server&)>& change,
                           uint32_t store_format, uint64_t incarnation)
    : store_(std::make_unique<MemoryStore>("test-cluster", store_format, incarnation)) {
  config_.set_listen("127.0.0.1:0");
  config_.set_http_listen(kNoHttp);
  config_.mutable_log()->set_level("error");
  if (change != nullptr) change(config_);
  const absl::Status status = CompleteConfig(config_);
  INFO(status);
  REQUIRE(status.ok());
  REQUIRE(StartLog(config_.log().level(), "").ok());
  Start();
}

ServiceWorld::~ServiceWorld() = default;

void ServiceWorld::Start() {
  absl::StatusOr<std::unique_ptr<App>> app = App::Start(
      config_,
      [this]() -> absl::StatusOr<std::unique_ptr<Store>> {
        return std::make_unique<BorrowedStore>(store_.get());
      },
      reread, health);
  INFO(app.status());
  REQUIRE(app.ok());
  app_ = *std::move(app);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  channel_ = grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", app_->port()),
                                       grpc::InsecureChannelCredentials(), arguments);
  jobs = v1::JobService::NewStub(channel_);
  queues = v1::QueueService::NewStub(channel_);
  nodes = v1::NodeService::NewStub(channel_);
  watch = v1::WatchService::NewStub(channel_);
  cluster = v1::ClusterService::NewStub(channel_);
  explain = v1::ExplainService::NewStub(channel_);
  hyper_nodes = v1::HyperNodeService::NewStub(channel_);
  priority_classes = v1::PriorityClassService::NewStub(channel_);
}

void ServiceWorld::Restart() {
  app_.reset();
  Start();
}

void ServiceWorld::CreateQueue(const std::string& name, const std::string& parent) {
  v1::CreateQueueRequest request;
  request.mutable_queue()->set_name(name);
  request.mutable_queue()->mutable_spec()->set_parent(parent);
  v1::Queue queue;
  const absl::Status status = Call(*queues, &v1::QueueService::Stub::CreateQueue, request, &queue);
  INFO(status);
  REQUIRE(status.ok());
}

absl::Status ServiceWorld::Submit(const v1::SubmitJobsRequest& request,
                                  v1::SubmitJobsResponse* response) {
  return Call(*jobs, &v1::JobService::Stub::SubmitJobs, request, response);
}

v1::SubmitJobsResponse ServiceWorld::MustSubmit(const std::vector<std::string>& names) {
  v1::SubmitJobsRequest request;
  for (const std::string& name : names) *request.add_jobs() = SmallJob(name);
  v1::SubmitJobsResponse response;
  const absl::Status status = Submit(request, &response);
  INFO(status);
  REQUIRE(status.ok());
  return response;
}

v1::Job ServiceWorld::MustGetJob(const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  v1::Job job;
  const absl::Status status = Call(*jobs, &v1::JobService::Stub::GetJob, request, &job);
  INFO(status);
  REQUIRE(status.ok());
  return job;
}

}  // namespace berth::testing
