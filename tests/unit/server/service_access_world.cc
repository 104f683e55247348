#include "tests/unit/server/service_access_world.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "server/config/config.h"
#include "support/log.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {
namespace {

void WriteText(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::unique_ptr<Authority> NewAuthorityIn(const TempDirectory& directory, const std::string& name) {
  const NewAuthority made = MakeAuthority(name, absl::Hours(24), absl::Now()).value();
  WriteText(directory / (name + ".pem"), made.certificate);
  WriteText(directory / (name + ".key"), made.key);
  return std::make_unique<Authority>(
      Authority::Open(made.certificate, made.key, absl::Now()).value());
}

// Certificates of servers are the openssl command's: Berth issues none.
void MakeServerCertificate(const TempDirectory& directory) {
  WriteText(directory / "server.ext", "subjectAltName=IP:127.0.0.1\n");
  const std::string command = absl::StrCat(
      "cd ", directory.path(),
      " && openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "
      "server.key -out server.csr -subj /CN=berthd >/dev/null 2>&1 && openssl x509 -req -in "
      "server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 1 -out server.pem -extfile "
      "server.ext >/dev/null 2>&1");
  REQUIRE(std::system(command.c_str()) == 0);
}

v1::AccessGrant GrantTo(const std::string& user, const std::string& role,
                        const std::string& queue) {
  v1::AccessGrant grant;
  grant.mutable_subject()->set_user(user);
  grant.set_role(role);
  grant.set_queue(queue);
  return grant;
}

void CreateQueueAs(Door& by, const std::string& name, const std::string& parent) {
  v1::CreateQueueRequest request;
  request.mutable_queue()->set_name(name);
  request.mutable_queue()->mutable_spec()->set_parent(parent);
  v1::Queue queue;
  const absl::Status status =
      Call(*by.queues, &v1::QueueService::Stub::CreateQueue, request, &queue);
  INFO(status);
  REQUIRE(status.ok());
}

// Names a task in the metadata of every call of a channel.
class TaskMetadata final : public grpc::MetadataCredentialsPlugin {
 public:
  explicit TaskMetadata(std::string task) : task_(std::move(task)) {}
  grpc::Status GetMetadata(grpc::string_ref, grpc::string_ref, const grpc::AuthContext&,
                           std::multimap<grpc::string, grpc::string>* metadata) override {
    metadata->emplace(kTaskMetadata, task_);
    return grpc::Status::OK;
  }

 private:
  const std::string task_;
};

}  // namespace

Door::Door(const std::shared_ptr<grpc::Channel>& channel)
    : jobs(v1::JobService::NewStub(channel)),
      queues(v1::QueueService::NewStub(channel)),
      nodes(v1::NodeService::NewStub(channel)),
      hyper_nodes(v1::HyperNodeService::NewStub(channel)),
      watch(v1::WatchService::NewStub(channel)),
      cluster(v1::ClusterService::NewStub(channel)),
      explain(v1::ExplainService::NewStub(channel)),
      access(v1::AccessService::NewStub(channel)),
      audit(v1::AuditService::NewStub(channel)),
      history(v1::HistoryService::NewStub(channel)),
      priority_classes(v1::PriorityClassService::NewStub(channel)),
      agents(v1::AgentService::NewStub(channel)) {}

AccessWorld::AccessWorld(bool enforced)
    : authority_(NewAuthorityIn(directory_, "ca")), users_(NewAuthorityIn(directory_, "users")) {
  MakeServerCertificate(directory_);
  ca_ = ReadText(directory_ / "ca.pem");
  WriteText(directory_ / "all.pem", ca_ + ReadText(directory_ / "users.pem"));
  config::v1::Server config;
  config.set_listen("127.0.0.1:0");
  config.set_http_listen(kNoHttp);
  config.mutable_log()->set_level("error");
  config.mutable_lease()->set_seconds(300);  // agents of tests send no heartbeats
  config.mutable_tls()->set_certificate(directory_ / "server.pem");
  config.mutable_tls()->set_key(directory_ / "server.key");
  config.mutable_tls()->set_ca(directory_ / "all.pem");
  config.mutable_access()->set_user_authorities(directory_ / "users.pem");
  config.mutable_access()->mutable_administrators()->add_users(kAdministrator);
  const absl::Status complete = CompleteConfig(config);
  INFO(complete);
  REQUIRE(complete.ok());
  REQUIRE(StartLog(config.log().level(), "").ok());
  absl::StatusOr<std::unique_ptr<App>> app =
      App::Start(config,
                 []() -> absl::StatusOr<std::unique_ptr<Store>> {
                   return std::make_unique<MemoryStore>("test-cluster", kStoreFormat, 0);
                 },
                 {});
  INFO(app.status());
  REQUIRE(app.ok());
  app_ = *std::move(app);
  root_ = User(kAdministrator);
  CreateQueueAs(root(), "team", "");
  CreateQueueAs(root(), "team-a", "team");
  CreateQueueAs(root(), "other", "");
  Submit(*User("owner"), "train", "team-a");
  Submit(*User("stranger"), "theirs", "other");
  if (!enforced) return;
  v1::ChangeAccessRequest change;
  change.set_enforce(true);
  REQUIRE(Change(root(), change).ok());
}

AccessWorld::~AccessWorld() = default;

std::unique_ptr<Door> AccessWorld::Open(const Authority& authority, const SpiffeId& id,
                                        const std::vector<std::string>& groups,
                                        absl::Duration lifetime, const std::string& task) {
  const CertificateRequest request = MakeCertificateRequest().value();
  const std::string certificate =
      authority.Issue(request.request, id, groups, lifetime, absl::Now()).value();
  auto credentials = grpc::SslCredentials({ca_, request.key, certificate});
  if (!task.empty()) {
    credentials = grpc::CompositeChannelCredentials(
        credentials, grpc::MetadataCredentialsFromPlugin(std::make_unique<TaskMetadata>(task)));
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return std::make_unique<Door>(
      grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", app_->port()), credentials, arguments));
}

std::unique_ptr<Door> AccessWorld::User(const std::string& name,
                                        const std::vector<std::string>& groups,
                                        absl::Duration lifetime) {
  return Open(*authority_, {"berth", SpiffeId::Kind::kUser, name}, groups, lifetime);
}

std::unique_ptr<Door> AccessWorld::Node(const std::string& name, absl::Duration lifetime) {
  return Open(*authority_, {"berth", SpiffeId::Kind::kNode, name}, {}, lifetime);
}

std::unique_ptr<Door> AccessWorld::NodeForTask(const std::string& name, const std::string& task) {
  return Open(*authority_, {"berth", SpiffeId::Kind::kNode, name}, {}, absl::Hours(1), task);
}

std::unique_ptr<Door> AccessWorld::UserForTask(const std::string& name, const std::string& task) {
  return Open(*authority_, {"berth", SpiffeId::Kind::kUser, name}, {}, absl::Hours(1), task);
}

std::unique_ptr<Door> AccessWorld::OfUsersAuthority(const SpiffeId& id) {
  return Open(*users_, id, {}, absl::Hours(1));
}

std::unique_ptr<Door> AccessWorld::Nobody() {
  return Open(*authority_, {"elsewhere", SpiffeId::Kind::kUser, "ada"}, {}, absl::Hours(1));
}

absl::Status AccessWorld::Change(Door& by, const v1::ChangeAccessRequest& change) {
  v1::ChangeAccessResponse response;
  return Call(*by.access, &v1::AccessService::Stub::ChangeAccess, change, &response);
}

void AccessWorld::Grant(const std::string& user, const std::string& role,
                        const std::string& queue) {
  v1::ChangeAccessRequest change;
  *change.add_grant() = GrantTo(user, role, queue);
  const absl::Status status = Change(root(), change);
  INFO(status);
  REQUIRE(status.ok());
}

void AccessWorld::Revoke(const std::string& user, const std::string& role,
                         const std::string& queue) {
  v1::ChangeAccessRequest change;
  *change.add_revoke() = GrantTo(user, role, queue);
  const absl::Status status = Change(root(), change);
  INFO(status);
  REQUIRE(status.ok());
}

void AccessWorld::Submit(Door& by, const std::string& name, const std::string& queue) {
  v1::SubmitJobsRequest request;
  *request.add_jobs() = SmallJob(name, queue);
  v1::JobSpec& spec = *request.mutable_jobs(0)->mutable_spec();
  (*spec.mutable_labels())["project"] = "secret-label";
  (*spec.mutable_annotations())["note"] = "secret-annotation";
  v1::EnvVar* env = spec.mutable_groups(0)->add_env();
  env->set_name("TOKEN");
  env->set_value("secret-value");
  spec.mutable_groups(0)->set_command(0, "secret-command");
  v1::SubmitJobsResponse response;
  const absl::Status status = Call(*by.jobs, &v1::JobService::Stub::SubmitJobs, request, &response);
  INFO(status);
  REQUIRE(status.ok());
}

uint64_t AccessWorld::UidOf(const std::string& job) {
  v1::GetJobRequest request;
  request.set_name(job);
  v1::Job found;
  REQUIRE(Call(*root().jobs, &v1::JobService::Stub::GetJob, request, &found).ok());
  return found.uid();
}

RunningAgent::RunningAgent(Door& node, const std::string& name)
    : name_(name), stream_(node.agents->Connect(&context_)) {
  v1::AgentMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_node(name);
  hello.set_agent_id("agent-of-" + name);
  hello.set_boot_id("boot");
  hello.set_knows_incarnations(true);
  hello.mutable_inventory()->set_cpu_millis(8000);
  hello.mutable_inventory()->set_memory_bytes(int64_t{8} << 30);
  Send(std::move(message));
  v1::ServerMessage answer;
  REQUIRE(stream_->Read(&answer));
  INFO(answer.ShortDebugString());
  REQUIRE(answer.has_welcome());
  welcome_ = answer.welcome();
  thread_ = std::thread([this] { Run(); });
}

RunningAgent::~RunningAgent() {
  context_.TryCancel();
  thread_.join();
  stream_->Finish();
}

void RunningAgent::Run() {
  v1::ServerMessage message;
  while (stream_->Read(&message)) Answer(message);
}

void RunningAgent::Answer(const v1::ServerMessage& message) {
  v1::AgentMessage answer;
  switch (message.message_case()) {
    case v1::ServerMessage::kPrepare:
      Report(message.prepare().key(), v1::TaskReport::PREPARED);
      if (message.prepare().start_at_once()) {
        Report(message.prepare().key(), v1::TaskReport::RUNNING);
      }
      return;
    case v1::ServerMessage::kStart:
      return Report(message.start().key(), v1::TaskReport::RUNNING);
    case v1::ServerMessage::kKill:
      return Report(message.kill().key(), v1::TaskReport::EXITED);
    case v1::ServerMessage::kOpenExec:
      answer.mutable_exec()->set_request(message.open_exec().request());
      answer.mutable_exec()->set_started(true);
      answer.mutable_exec()->set_end(message.open_exec().command(0) != kLasting);
      return Send(std::move(answer));
    case v1::ServerMessage::kReadLog:
      answer.mutable_log()->set_request(message.read_log().request());
      answer.mutable_log()->set_end(true);
      return Send(std::move(answer));
    default:
      return;
  }
}

void RunningAgent::Report(const v1::TaskKey& key, v1::TaskReport::State state) {
  v1::AgentMessage message;
  message.mutable_report()->set_report_id(++reports_);
  *message.mutable_report()->mutable_key() = key;
  message.mutable_report()->set_state(state);
  Send(std::move(message));
  if (state != v1::TaskReport::RUNNING) return;
  absl::MutexLock lock(&mutex_);
  running_.insert(key.job_uid());
}

void RunningAgent::Send(v1::AgentMessage message) {
  if (!message.has_hello()) message.set_epoch(welcome_.epoch());
  stream_->Write(message);
}

void RunningAgent::AwaitTask(uint64_t job_uid) {
  const auto runs = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return running_.contains(job_uid); };
  absl::MutexLock lock(&mutex_);
  REQUIRE(mutex_.AwaitWithTimeout(absl::Condition(&runs), absl::Seconds(60)));
}

TaskCall RunningAgent::CallOf(uint64_t job_uid) const {
  return {.job_uid = job_uid,
          .task = 0,
          .attempt = 1,
          .node_id = welcome_.node_id(),
          .epoch = welcome_.epoch(),
          .key = welcome_.task_key(),
          .node = name_};
}

}  // namespace berth::testing
