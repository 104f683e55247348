// The sockets of tasks, and the calls that they forward: real sockets, and a berthd that notes what
// it gets.
#include "clients/agent/task_sockets.h"

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "berth/v1/agent.grpc.pb.h"
#include "berth/v1/job.grpc.pb.h"
#include "clients/agent/task_proxy.h"
#include "support/errors.h"
#include "support/task_call.h"
#include "tests/unit/agent/process_world.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT

constexpr uid_t kNobody = 65534;
const TaskId kId = {.job_uid = 12, .task = 3, .attempt = 2, .incarnation = 5};

std::string TaskOf(const grpc::ServerContext& context) {
  const auto [first, last] = context.client_metadata().equal_range(kTaskMetadata);
  std::string all;
  for (auto it = first; it != last; ++it) {
    absl::StrAppend(&all, all.empty() ? "" : "|",
                    absl::string_view(it->second.data(), it->second.size()));
  }
  return all;
}

// Answers with the task that it was told; Exec repeats its input.
class EchoServer final : public v1::JobService::Service {
 public:
  EchoServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    REQUIRE(port_ != 0);
  }
  ~EchoServer() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::shared_ptr<grpc::Channel> channel() const {
    return grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_),
                               grpc::InsecureChannelCredentials());
  }

  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request,
                      v1::Job* answer) override {
    if (request->name() == "none") {
      return ToGrpcStatus(ViolationsError(absl::StatusCode::kNotFound, {{"name", "no such job"}}));
    }
    answer->set_name(request->name());
    answer->set_etag(TaskOf(*context));
    return grpc::Status::OK;
  }
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest*,
                        v1::ListJobsResponse*) override {
    ++other_calls;
    return grpc::Status::OK;
  }
  grpc::Status ReadLogs(grpc::ServerContext*, const v1::ReadLogsRequest* request,
                        grpc::ServerWriter<v1::ReadLogsResponse>* writer) override {
    v1::ReadLogsResponse answer;
    for (uint32_t i = 1; i <= static_cast<uint32_t>(request->tail_lines()); ++i) {
      answer.set_attempt(i);
      writer->Write(answer);
    }
    return {grpc::StatusCode::OUT_OF_RANGE, "no more"};
  }
  grpc::Status Exec(grpc::ServerContext*,
                    grpc::ServerReaderWriter<v1::ExecResponse, v1::ExecRequest>* stream) override {
    v1::ExecRequest request;
    v1::ExecResponse answer;
    ++open;
    while (stream->Read(&request)) {
      answer.set_output(request.input());
      stream->Write(answer);
    }
    --open;
    return grpc::Status::OK;
  }

  std::atomic<int> other_calls = 0, open = 0;

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class SocketWorld {
 public:
  SocketWorld() {
    auto made = TaskSockets::Create({server.channel()});
    REQUIRE(made.ok());
    sockets = *std::move(made);
    chmod(state.path().c_str(), 0711);
  }
  void Register() {
    sockets->SetSession(
        AgentSession{.node = "n1", .node_id = 7, .epoch = 9, .incarnation = 5, .key = "abc"});
  }
  std::string Path(const std::string& name = "s") const { return state.path() + "/" + name; }
  static std::unique_ptr<v1::JobService::Stub> Connect(const std::string& path) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::JobService::NewStub(
        grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments));
  }

  TemporaryDirectory state;
  EchoServer server;
  std::unique_ptr<TaskSockets> sockets;
};

absl::Status GetJob(v1::JobService::Stub& stub, const std::string& name, v1::Job* answer) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  context.AddMetadata(kTaskMetadata, "forged");  // is not passed on
  v1::GetJobRequest request;
  request.set_name(name);
  return FromGrpcStatus(stub.GetJob(&context, request, answer));
}

// 0, or the errno of the first operation on a connection that was refused.
int TryConnection(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  int error =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  char byte;  // a server of gRPC sends its settings at once
  if (error == 0 && read(fd, &byte, 1) <= 0) error = ECONNRESET;
  close(fd);
  return error;
}

int TryConnectionAs(uid_t user, const std::string& path) {
  const pid_t pid = fork();
  if (pid == 0) _exit(setresuid(user, user, user) != 0 ? 255 : TryConnection(path));
  int status = 0;
  waitpid(pid, &status, 0);
  return WEXITSTATUS(status);
}

TEST_CASE("task sockets: calls are forwarded with the task's name, and nothing else of it") {
  SocketWorld world;
  REQUIRE(world.sockets->Open(kId, world.Path(), geteuid()).ok());
  const auto stub = SocketWorld::Connect(world.Path());
  v1::Job job;
  CHECK(absl::IsUnavailable(GetJob(*stub, "j", &job)));  // not registered yet
  world.Register();
  REQUIRE(GetJob(*stub, "j", &job).ok());
  CHECK(job.name() == "j");
  CHECK(job.etag() == "12 3 2 7 9 abc n1");
  const absl::Status none = GetJob(*stub, "none", &job);
  CHECK(absl::IsNotFound(none));
  REQUIRE(ViolationsOf(none).size() == 1);
  CHECK(ViolationsOf(none)[0].description == "no such job");
  world.sockets->SetSession(std::nullopt);
  CHECK(absl::IsUnavailable(GetJob(*stub, "j", &job)));
}

TEST_CASE("task sockets: tasks of another store's incarnation, and servers without keys") {
  SocketWorld world;
  TaskId older = kId;
  older.incarnation = 4;
  REQUIRE(world.sockets->Open(older, world.Path(), geteuid()).ok());
  const auto stub = SocketWorld::Connect(world.Path());
  world.Register();
  v1::Job job;
  CHECK(absl::IsUnavailable(GetJob(*stub, "j", &job)));
  world.sockets->SetSession(AgentSession{.node = "n1", .incarnation = 4, .key = ""});
  const absl::Status old = GetJob(*stub, "j", &job);
  CHECK(absl::StrContains(old.message(), "a version that takes no calls of tasks"));
}

TEST_CASE("task sockets: methods that are not for tasks do not reach berthd") {
  SocketWorld world;
  world.Register();
  REQUIRE(world.sockets->Open(kId, world.Path(), geteuid()).ok());
  const auto stub = SocketWorld::Connect(world.Path());
  grpc::ClientContext context;
  v1::ListJobsResponse answer;
  const absl::Status refused =
      FromGrpcStatus(stub->ListJobs(&context, v1::ListJobsRequest(), &answer));
  CHECK(absl::IsPermissionDenied(refused));
  CHECK(absl::StrContains(refused.message(), "/berth.v1.JobService/ListJobs"));
  CHECK(world.server.other_calls == 0);
  const auto agents = v1::AgentService::NewStub(
      grpc::CreateChannel("unix:" + world.Path(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext second;
  CHECK(absl::IsPermissionDenied(FromGrpcStatus(agents->Connect(&second)->Finish())));
}

TEST_CASE("task sockets: names of methods") {
  CHECK(MethodOfPath("/berth.v1.JobService/GetJob") == "JobService.GetJob");
  for (const char* path :
       {"", "/", "JobService/GetJob", "/berth.v1.", "/berth.v1.JobService.GetJob",
        "/berth.v2.JobService/GetJob", "/other.berth.v1.JobService/GetJob"}) {
    INFO(path);
    CHECK_FALSE(IsTaskMethod(MethodOfPath(path)));
  }
  CHECK_FALSE(IsTaskMethod(MethodOfPath("/berth.v1.x/JobService/GetJob")));
}

TEST_CASE("task sockets: streams in both directions, to their ends") {
  SocketWorld world;
  world.Register();
  REQUIRE(world.sockets->Open(kId, world.Path(), geteuid()).ok());
  const auto stub = SocketWorld::Connect(world.Path());
  {
    grpc::ClientContext context;
    v1::ReadLogsRequest request;
    request.set_tail_lines(1000);
    const auto stream = stub->ReadLogs(&context, request);
    v1::ReadLogsResponse answer;
    uint32_t count = 0;
    while (stream->Read(&answer)) CHECK(answer.attempt() == ++count);
    CHECK(count == 1000);
    CHECK(absl::IsOutOfRange(FromGrpcStatus(stream->Finish())));
  }
  grpc::ClientContext context;
  const auto stream = stub->Exec(&context);
  v1::ExecRequest request;
  v1::ExecResponse answer;
  const std::string block(64 << 10, 'x');
  for (int i = 0; i < 100; ++i) {
    request.set_input(absl::StrCat(i, block.substr(16)));
    REQUIRE(stream->Write(request));
    REQUIRE(stream->Read(&answer));
    REQUIRE(answer.output() == request.input());
  }
  stream->WritesDone();
  CHECK_FALSE(stream->Read(&answer));
  CHECK(stream->Finish().ok());
  CHECK(Eventually([&] { return world.server.open == 0; }));
}

TEST_CASE("task sockets: a client that goes away, and a message that is too long") {
  SocketWorld world;
  world.Register();
  REQUIRE(world.sockets->Open(kId, world.Path(), geteuid()).ok());
  const auto stub = SocketWorld::Connect(world.Path());
  v1::ExecRequest request;
  v1::ExecResponse answer;
  {
    grpc::ClientContext context;
    const auto stream = stub->Exec(&context);
    request.set_input("a");
    REQUIRE(stream->Write(request));
    REQUIRE(stream->Read(&answer));
    CHECK(world.server.open == 1);
    context.TryCancel();
    stream->Finish();
  }
  CHECK(Eventually([&] { return world.server.open == 0; }));
  v1::Job job;
  CHECK(absl::IsResourceExhausted(GetJob(*stub, std::string(300 << 10, 'n'), &job)));
  CHECK(GetJob(*stub, "j", &job).ok());
}

TEST_CASE("task sockets: the end of the task removes its socket and ends its calls") {
  SocketWorld world;
  world.Register();
  REQUIRE(world.sockets->Open(kId, world.Path(), geteuid()).ok());
  const auto stub = SocketWorld::Connect(world.Path());
  grpc::ClientContext context;
  const auto stream = stub->Exec(&context);
  v1::ExecRequest request;
  v1::ExecResponse answer;
  request.set_input("a");
  REQUIRE(stream->Write(request));
  REQUIRE(stream->Read(&answer));
  world.sockets->Close(kId);
  CHECK_FALSE(std::filesystem::exists(world.Path()));
  CHECK_FALSE(stream->Read(&answer));
  CHECK_FALSE(stream->Finish().ok());
  CHECK(Eventually([&] { return world.server.open == 0; }));
  CHECK(TryConnection(world.Path()) == ENOENT);
  world.sockets->Close(kId);  // again: nothing happens
}

TEST_CASE("task sockets: another agent takes the place of the socket") {
  SocketWorld world;
  world.Register();
  REQUIRE(world.sockets->Open(kId, world.Path(), geteuid()).ok());
  const auto stub = SocketWorld::Connect(world.Path());
  v1::Job job;
  REQUIRE(GetJob(*stub, "j", &job).ok());
  world.sockets = nullptr;
  CHECK(std::filesystem::exists(world.Path()));
  CHECK(TryConnection(world.Path()) == ECONNREFUSED);
  world.sockets = *TaskSockets::Create({world.server.channel()});
  world.Register();
  REQUIRE(world.sockets->Open(kId, world.Path(), geteuid()).ok());
  CHECK(Eventually([&] { return GetJob(*stub, "j", &job).ok(); }));
}

TEST_CASE("task sockets: only processes of the task's user are let in") {
  if (geteuid() != 0) return;  // other users need root
  SocketWorld world;
  world.Register();
  REQUIRE(world.sockets->Open(kId, world.Path(), kNobody).ok());
  CHECK(TryConnectionAs(kNobody, world.Path()) == 0);
  CHECK(TryConnectionAs(kNobody - 1, world.Path()) == EACCES);
  REQUIRE(chmod(world.Path().c_str(), 0666) == 0);  // the kernel's word counts as well
  CHECK(TryConnectionAs(kNobody - 1, world.Path()) == ECONNRESET);
  CHECK(TryConnection(world.Path()) == ECONNRESET);  // root
}

TEST_CASE("task sockets: connections are bounded, and places become free again") {
  SocketWorld world;
  world.Register();
  REQUIRE(world.sockets->Open(kId, world.Path(), geteuid()).ok());
  std::vector<int> held;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  world.Path().copy(address.sun_path, sizeof address.sun_path - 1);
  for (size_t i = 0; i < kMostTaskConnections; ++i) {
    held.push_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(connect(held.back(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    char byte;
    REQUIRE(read(held.back(), &byte, 1) == 1);
  }
  CHECK(TryConnection(world.Path()) == ECONNRESET);
  for (const int fd : held) close(fd);
  CHECK(Eventually([&] { return TryConnection(world.Path()) == 0; }));
}

TEST_CASE("task sockets: a task that calls without end is refused, and loses its socket") {
  SocketWorld world;
  world.Register();
  REQUIRE(world.sockets->Open(kId, world.Path(), geteuid()).ok());
  const auto stub = SocketWorld::Connect(world.Path());
  v1::Job job;
  bool refused = false;
  const absl::Time end = absl::Now() + kPatience;
  while (std::filesystem::exists(world.Path()) && absl::Now() < end) {
    const absl::Status status = GetJob(*stub, "j", &job);
    refused = refused || absl::StrContains(status.message(), "more than 200 calls a second");
  }
  CHECK(refused);
  CHECK_FALSE(std::filesystem::exists(world.Path()));
}

TEST_CASE("task sockets: a path that is too long") {
  SocketWorld world;
  CHECK_FALSE(world.sockets->Open(kId, world.Path(std::string(200, 'p')), geteuid()).ok());
  world.sockets->Close(kId);
}

}  // namespace
}  // namespace berth
