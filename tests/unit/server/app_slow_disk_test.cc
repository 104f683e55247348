// A disk whose syncs take long: nothing is reported before the sync is done, but heartbeats of
// agents continue and renew their leases. Over real gRPC.
//
// BERTH_SLOW_SYNC_S: minimum duration of a sync in seconds; default 2.5.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "berth/v1/agent.grpc.pb.h"
#include "berth/v1/explain.grpc.pb.h"
#include "server/config/config.h"
#include "server/loop/loop.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "support/clock.h"
#include "support/log.h"
#include "support/unsynced.h"
#include "tests/unit/server/service_world.h"
#include "tests/unit/server/validation_samples.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth::testing {
namespace {

absl::Duration LongSync() {
  double seconds = 2.5;
  const char* given = std::getenv("BERTH_SLOW_SYNC_S");
  if (given != nullptr) REQUIRE(absl::SimpleAtod(given, &seconds));
  return absl::Seconds(seconds);
}

// Syncs of write-ahead logs wait while the gate is closed.
class SlowFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  SlowFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "Slow"; }

  void Close() { Set(false); }
  void Open() { Set(true); }
  void AwaitSync() {
    const auto one_waits = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return waiting_ > 0; };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&one_waits));
  }

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = target()->NewWritableFile(name, options, file, debug);
    if (status.ok() && absl::EndsWith(name, ".log")) {
      *file = std::make_unique<File>(std::move(*file), this);
    }
    return status;
  }

 private:
  class File final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSWritableFile> file, SlowFileSystem* disk)
        : FSWritableFileOwnerWrapper(std::move(file)), disk_(disk) {}
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
      disk_->Wait();
      return target()->Sync(options, debug);
    }
    rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                            rocksdb::IODebugContext* debug) override {
      return Sync(options, debug);
    }

   private:
    SlowFileSystem* const disk_;
  };

  void Set(bool open) {
    absl::MutexLock lock(&mutex_);
    open_ = open;
  }
  void Wait() {
    absl::MutexLock lock(&mutex_);
    ++waiting_;
    mutex_.Await(absl::Condition(&open_));
    --waiting_;
  }

  absl::Mutex mutex_;
  bool open_ ABSL_GUARDED_BY(mutex_) = true;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
};

struct SlowServer {
  SlowServer() {
    config.set_listen("127.0.0.1:0");
    config.set_http_listen(kNoHttp);
    config.mutable_log()->set_level("error");
    config.mutable_lease()->set_seconds(1);
    config.mutable_heartbeat_interval()->set_nanos(200'000'000);
    REQUIRE(CompleteConfig(config).ok());
    REQUIRE(StartLog("error", "").ok());
    auto started = App::Start(config, [this]() -> absl::StatusOr<std::unique_ptr<Store>> {
      return RocksDbStore::Open({.directory = directory / "a", .file_system = disk});
    });
    INFO(started.status());
    REQUIRE(started.ok());
    app = *std::move(started);
    channel = grpc::CreateChannel("127.0.0.1:" + std::to_string(app->port()),
                                  grpc::InsecureChannelCredentials());
    jobs = v1::JobService::NewStub(channel);
    queues = v1::QueueService::NewStub(channel);
    nodes = v1::NodeService::NewStub(channel);
    agents = v1::AgentService::NewStub(channel);
  }
  ~SlowServer() { disk->Open(); }

  TempDirectory directory;
  std::shared_ptr<SlowFileSystem> disk = std::make_shared<SlowFileSystem>();
  config::v1::Server config;
  std::unique_ptr<App> app;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::JobService::Stub> jobs;
  std::unique_ptr<v1::QueueService::Stub> queues;
  std::unique_ptr<v1::NodeService::Stub> nodes;
  std::unique_ptr<v1::AgentService::Stub> agents;
};

// An agent that sends one heartbeat after the other.
class Beating {
 public:
  explicit Beating(v1::AgentService::Stub& stub) : stream_(stub.Connect(&context_)) {
    v1::AgentMessage message;
    message.mutable_hello()->set_node("n1");
    message.mutable_hello()->set_agent_id("a");
    message.mutable_hello()->set_boot_id("boot");
    message.mutable_hello()->set_knows_incarnations(true);
    message.mutable_hello()->mutable_inventory()->set_cpu_millis(4000);
    REQUIRE(stream_->Write(message));
    epoch_ = Next(v1::ServerMessage::kWelcome).welcome().epoch();
  }
  ~Beating() { context_.TryCancel(); }

  // Returns whether it was answered.
  bool Beat() {
    v1::AgentMessage beat;
    beat.set_epoch(epoch_);
    beat.mutable_heartbeat()->set_sequence(++sequence_);
    return stream_->Write(beat) &&
           Next(v1::ServerMessage::kHeartbeatAck).heartbeat_ack().sequence() == sequence_;
  }

 private:
  // The next message of its kind: tasks may be sent in between.
  v1::ServerMessage Next(v1::ServerMessage::MessageCase kind) {
    v1::ServerMessage message;
    do {
      REQUIRE(stream_->Read(&message));
    } while (message.message_case() != kind);
    return message;
  }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::ServerMessage>> stream_;
  uint64_t epoch_ = 0, sequence_ = 0;
};

// As the loop has it, durable or not.
bool NodeIsReady(SlowServer& server) {
  return server.app->loop().Read([](const ClusterState& state, uint64_t) {
    const Node* node = state.FindNode("n1");
    return node != nullptr && node->status.state == NodeState::kReady;
  });
}

absl::Status ListAll(SlowServer& server, int* jobs) {
  v1::ListJobsResponse response;
  absl::Status status =
      Call(*server.jobs, &v1::JobService::Stub::ListJobs, v1::ListJobsRequest(), &response);
  *jobs = response.jobs_size();
  return status;
}

void MakeQueue(SlowServer& server) {
  v1::CreateQueueRequest create;
  create.mutable_queue()->set_name("q");
  v1::Queue queue;
  REQUIRE(Call(*server.queues, &v1::QueueService::Stub::CreateQueue, create, &queue).ok());
}

absl::Status SubmitOne(SlowServer& server, const std::string& name) {
  v1::SubmitJobsRequest request;
  *request.add_jobs() = SmallJob(name);
  v1::SubmitJobsResponse response;
  return Call(*server.jobs, &v1::JobService::Stub::SubmitJobs, request, &response);
}

// A call on a separate thread.
class Asked {
 public:
  explicit Asked(std::function<absl::Status()> call)
      : thread_([this, call = std::move(call)] {
          status_ = call();
          answered_.Notify();
        }) {}
  ~Asked() { thread_.join(); }
  bool answered() const { return answered_.HasBeenNotified(); }
  absl::Status Answer() {
    answered_.WaitForNotification();
    return status_;
  }

 private:
  absl::Status status_;
  absl::Notification answered_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("app: while a sync takes long, heartbeats and leases continue, and nothing is reported") {
  SlowServer server;
  MakeQueue(server);
  REQUIRE(SubmitOne(server, "before").ok());
  Beating agent(*server.agents);
  int listed = 0, listed_behind = 0;

  server.disk->Close();
  Asked slow([&] { return SubmitOne(server, "slow"); });
  const absl::Cleanup open = [&] { server.disk->Open(); };  // before the threads are joined
  server.disk->AwaitSync();
  Asked behind([&] { return SubmitOne(server, "behind"); });  // in a separate batch
  Asked reader([&] { return ListAll(server, &listed); });
  const absl::Duration begin = SystemClock().Steady();
  int beats = 0;
  for (; SystemClock().Steady() < begin + LongSync(); ++beats) {
    REQUIRE(agent.Beat());
    REQUIRE(NodeIsReady(server));  // its lease is far shorter than the sync
    REQUIRE_FALSE(slow.answered());
    REQUIRE_FALSE(behind.answered());
    // The state that it read may still be lost. The call does not wait forever.
    if (SystemClock().Steady() < begin + kDurablePatience) REQUIRE_FALSE(reader.answered());
    absl::SleepFor(absl::Milliseconds(20));
  }
  const bool gave_up = reader.answered();
  Asked late_reader([&] { return ListAll(server, &listed_behind); });
  server.disk->Open();
  CHECK(slow.Answer().ok());
  CHECK(behind.Answer().ok());
  CHECK(gave_up == absl::IsUnavailable(reader.Answer()));
  if (!gave_up) CHECK(listed >= 2);
  CHECK(late_reader.Answer().ok());
  CHECK(listed_behind >= 2);
  CHECK(agent.Beat());  // in the same session as before
  CHECK(beats > 1);
  std::cout << beats << " heartbeats within a sync of " << LongSync() << "\n";
}

// The answer is marked as not yet durable. Callers that do not opt in never get such an answer.
TEST_CASE("app: while a sync takes long, clients that opt in can read data that is not durable") {
  SlowServer server;
  MakeQueue(server);
  REQUIRE(SubmitOne(server, "before").ok());
  server.disk->Close();
  Asked slow([&] { return SubmitOne(server, "slow"); });
  const absl::Cleanup open = [&] { server.disk->Open(); };
  server.disk->AwaitSync();
  while (!server.app->loop().Read(
      [](const ClusterState& state, uint64_t) { return state.FindJob("slow") != nullptr; })) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  const auto read = [&](auto& stub, auto method, const auto& request, auto* response) {
    grpc::ClientContext context;
    context.AddMetadata(kUnsyncedMetadata, kUnsyncedAllowed);
    const grpc::Status status = (stub.*method)(&context, request, response);
    INFO(status.error_message());
    CHECK(status.ok());
    return context.GetServerTrailingMetadata().contains(kUnsyncedMetadata);
  };
  v1::ListJobsResponse jobs;
  CHECK(read(*server.jobs, &v1::JobService::Stub::ListJobs, v1::ListJobsRequest(), &jobs));
  CHECK(jobs.jobs_size() == 2);
  v1::GetJobRequest get;
  get.set_name("slow");
  v1::Job job;
  CHECK(read(*server.jobs, &v1::JobService::Stub::GetJob, get, &job));
  CHECK(job.name() == "slow");
  CHECK(job.spec().groups(0).command().empty());  // only the store has it
  v1::ExplainJobRequest explain;
  explain.set_job("slow");
  v1::ExplainJobResponse why;
  const auto explainer = v1::ExplainService::NewStub(server.channel);
  CHECK(read(*explainer, &v1::ExplainService::Stub::ExplainJob, explain, &why));
  CHECK_FALSE(slow.answered());
  server.disk->Open();
  CHECK(slow.Answer().ok());
  CHECK_FALSE(read(*server.jobs, &v1::JobService::Stub::GetJob, get, &job));
  CHECK_FALSE(job.spec().groups(0).command().empty());
}

}  // namespace berth::testing
