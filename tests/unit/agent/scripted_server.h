// A server that the test controls, for agents with real streams.
#ifndef BERTH_TESTS_UNIT_AGENT_SCRIPTED_SERVER_H_
#define BERTH_TESTS_UNIT_AGENT_SCRIPTED_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "berth/v1/agent.grpc.pb.h"
#include "clients/agent/agent_config.h"
#include "support/standby.h"
#include "tests/unit/agent/fakes.h"
#include "tests/unit/agent/process_world.h"

namespace berth::testing {

// Also removes its control groups.
struct StateDirectory : TemporaryDirectory {
  ~StateDirectory() { RemoveGroups(GroupParentOf(path())); }
};

// Welcomes every Hello, acks every heartbeat and report, and records the messages of agents.
class ScriptedServer final : public v1::AgentService::Service {
 public:
  using Stream = grpc::ServerReaderWriter<v1::ServerMessage, v1::AgentMessage>;

  ScriptedServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
  }
  ~ScriptedServer() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  // As a standby that names this leader; "": that knows of none. Ends the present streams.
  void StandBy(const std::string& leader) {
    absl::MutexLock lock(&mutex_);
    standby_ = leader;
    for (grpc::ServerContext* context : contexts_) context->TryCancel();
  }
  // As the leader, in a term. The messages follow each Welcome at once.
  void Lead(uint64_t term, std::vector<v1::ServerMessage> orders = {}) {
    absl::MutexLock lock(&mutex_);
    standby_.reset();
    term_ = term;
    orders_ = std::move(orders);
  }

  grpc::Status Connect(grpc::ServerContext* context, Stream* stream) override {
    if (absl::MutexLock lock(&mutex_); standby_.has_value()) {
      ++refused_;
      if (!standby_->empty()) context->AddTrailingMetadata(kLeaderMetadata, *standby_);
      return {grpc::StatusCode::UNAVAILABLE, "this server is a standby"};
    } else {
      contexts_.insert(context);
    }
    const grpc::Status status = Serve(stream);
    absl::MutexLock lock(&mutex_);
    contexts_.erase(context);
    return status;
  }
  grpc::Status Serve(Stream* stream) {
    v1::AgentMessage message;
    std::string node;
    while (stream->Read(&message)) {
      absl::MutexLock lock(&mutex_);
      if (message.has_hello()) {
        node = message.hello().node();
        streams_[node] = stream;
        v1::ServerMessage welcome;
        welcome.set_term(term_);
        welcome.mutable_welcome()->set_epoch(++epoch_);
        welcome.mutable_welcome()->mutable_lease()->set_seconds(15);
        welcome.mutable_welcome()->mutable_heartbeat_interval()->set_nanos(200'000'000);
        welcome.mutable_welcome()->set_takes_progress(true);
        stream->Write(welcome);
        for (const v1::ServerMessage& order : orders_) stream->Write(order);
      }
      v1::ServerMessage answer;
      answer.set_term(term_);
      if (message.has_heartbeat())
        answer.mutable_heartbeat_ack()->set_sequence(message.heartbeat().sequence());
      if (message.has_report() && ack_reports)
        answer.mutable_report_ack()->set_report_id(message.report().report_id());
      if (answer.message_case() != v1::ServerMessage::MESSAGE_NOT_SET) stream->Write(answer);
      seen_.push_back(message);
    }
    absl::MutexLock lock(&mutex_);
    if (streams_[node] == stream) streams_.erase(node);
    return grpc::Status::OK;
  }
  void Send(const std::string& node, const v1::ServerMessage& message) {
    absl::MutexLock lock(&mutex_);
    REQUIRE(streams_.contains(node));
    v1::ServerMessage of_term = message;
    of_term.set_term(term_);
    streams_[node]->Write(of_term);
  }
  // The first message since `Forget` that `match` accepts.
  template <class Match>
  v1::AgentMessage Await(Match match) {
    const absl::Time end = absl::Now() + kPatience;
    while (absl::Now() < end) {
      {
        absl::MutexLock lock(&mutex_);
        for (const v1::AgentMessage& message : seen_) {
          if (match(message)) return message;
        }
      }
      absl::SleepFor(absl::Milliseconds(5));
    }
    absl::MutexLock lock(&mutex_);
    std::string seen;
    for (const v1::AgentMessage& message : seen_) {
      if (!message.has_heartbeat()) absl::StrAppend(&seen, message.ShortDebugString(), "\n");
    }
    FAIL("no such message among " << seen_.size() << ":\n" << seen);
    return {};
  }
  v1::TaskReport AwaitReport(uint64_t uid, v1::TaskReport::State state) {
    return Await([&](const v1::AgentMessage& m) {
             return m.has_report() && m.report().key().job_uid() == uid &&
                    m.report().state() == state;
           })
        .report();
  }
  size_t Count(v1::TaskReport::State state) {
    absl::MutexLock lock(&mutex_);
    return static_cast<size_t>(std::count_if(
        seen_.begin(), seen_.end(),
        [&](const v1::AgentMessage& m) { return m.has_report() && m.report().state() == state; }));
  }
  void Forget() {
    absl::MutexLock lock(&mutex_);
    seen_.clear();
  }
  size_t connected() {
    absl::MutexLock lock(&mutex_);
    return streams_.size();
  }

  // Streams that were answered as by a standby.
  size_t refused() {
    absl::MutexLock lock(&mutex_);
    return refused_;
  }

  std::atomic<bool> ack_reports = true;

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  absl::Mutex mutex_;
  std::map<std::string, Stream*> streams_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::AgentMessage> seen_ ABSL_GUARDED_BY(mutex_);
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t term_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<std::string> standby_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::ServerMessage> orders_ ABSL_GUARDED_BY(mutex_);
  std::set<grpc::ServerContext*> contexts_ ABSL_GUARDED_BY(mutex_);
  size_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
};

inline v1::ServerMessage PrepareMessage(uint64_t uid, const std::string& script, bool at_once) {
  v1::ServerMessage message;
  v1::Prepare& prepare = *message.mutable_prepare();
  prepare.mutable_key()->set_job_uid(uid);
  prepare.mutable_key()->set_attempt(1);
  prepare.set_start_at_once(at_once);
  prepare.set_reserve_port(true);
  prepare.mutable_launch()->set_job("j");
  prepare.mutable_launch()->set_fence(true);
  prepare.mutable_launch()->mutable_kill_grace()->set_seconds(1);
  for (const std::string& arg : {std::string("sh"), std::string("-c"), script})
    prepare.mutable_launch()->add_command(arg);
  return message;
}

inline config::v1::Agent AgentConfig(const std::string& state, const std::string& server) {
  config::v1::Agent config;
  config.set_node_name("n1");
  config.set_address("127.0.0.1");
  config.set_state_directory(state);
  config.set_server(server);
  config.set_allow_root_tasks(true);
  config.set_first_port(27000);
  config.set_last_port(27999);
  config.mutable_cgroups()->set_parent(GroupParentOf(state));
  SetAgentDefaults(&config);
  return config;
}

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_AGENT_SCRIPTED_SERVER_H_
