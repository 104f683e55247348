#include "clients/slurm/step_link.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "clients/slurm/child_process.h"
#include "clients/slurm/frames.h"
#include "clients/slurm/variables.h"

namespace berth {
namespace {

constexpr absl::Duration kMostPatience = absl::Seconds(60);
constexpr absl::Duration kBetweenTries = absl::Milliseconds(200);
constexpr size_t kExecBytes = size_t{32} << 10;

class LocalLink final : public StepLink {
 public:
  ~LocalLink() override {
    close(in_);
    close(out_);
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }
  absl::Status Begin(const std::string& program) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0) return absl::ResourceExhaustedError("pipe");
    in_ = in[1];
    if (pipe2(out, O_CLOEXEC) != 0) return absl::ResourceExhaustedError("pipe");
    out_ = out[0];
    fcntl(out_, F_SETFL, O_NONBLOCK);
    const ChildProcess child{.arguments = {program, "slurmstepd", "step"},
                             .environment = EnvironmentOf(OwnVariables()),
                             .in = in[0],
                             .out = out[1],
                             .err = STDERR_FILENO};
    const absl::StatusOr<pid_t> pid = StartChild(child);
    close(in[0]);
    close(out[1]);
    if (pid.ok()) pid_ = *pid;
    return pid.status();
  }
  int fd() const override { return out_; }
  bool Send(absl::string_view bytes) override { return WriteAll(in_, bytes); }
  std::string Trouble() override { return ""; }

 private:
  pid_t pid_ = 0;
  int in_ = -1, out_ = -1;
};

using ExecStream = grpc::ClientReaderWriterInterface<v1::ExecRequest, v1::ExecResponse>;

// A thread passes what comes from the stream to a pipe, so that all links are polled alike.
class RemoteLink final : public StepLink {
 public:
  RemoteLink(std::unique_ptr<grpc::ClientContext> context, std::unique_ptr<ExecStream> stream)
      : context_(std::move(context)), stream_(std::move(stream)) {}
  ~RemoteLink() override {
    context_->TryCancel();
    close(pipe_[0]);
    if (thread_.joinable()) thread_.join();
  }
  absl::Status Begin() {
    if (pipe2(pipe_, O_CLOEXEC) != 0) return absl::ResourceExhaustedError("pipe");
    fcntl(pipe_[0], F_SETFL, O_NONBLOCK);
    thread_ = std::thread([this] { Pass(); });
    return absl::OkStatus();
  }
  int fd() const override { return pipe_[0]; }
  bool Send(absl::string_view bytes) override {
    for (size_t at = 0; at < bytes.size(); at += kExecBytes) {
      v1::ExecRequest request;
      request.set_input(std::string(bytes.substr(at, kExecBytes)));
      if (!stream_->Write(request)) return false;
    }
    return true;
  }
  std::string Trouble() override {
    const absl::MutexLock lock(&mutex_);
    return trouble_;
  }

 private:
  void Pass() {
    v1::ExecResponse answer;
    std::string errors;
    while (stream_->Read(&answer)) {
      if (answer.stream() == v1::STDERR) {
        if (errors.size() < kExecBytes) errors += answer.output();
      } else if (!WriteAll(pipe_[1], answer.output())) {
        break;
      }
    }
    const absl::Status status = FromGrpcStatus(stream_->Finish());
    {
      const absl::MutexLock lock(&mutex_);
      trouble_ = status.ok() ? errors : std::string(status.message());
    }
    close(pipe_[1]);
  }

  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<ExecStream> stream_;
  std::thread thread_;
  int pipe_[2] = {-1, -1};
  absl::Mutex mutex_;
  std::string trouble_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<StepLink>> LinkHere(const std::string& program) {
  auto link = std::make_unique<LocalLink>();
  if (absl::Status status = link->Begin(program); !status.ok()) return status;
  return link;
}

absl::StatusOr<std::unique_ptr<StepLink>> LinkThere(SlurmContext& context, const std::string& job,
                                                    const std::string& task) {
  const absl::StatusOr<Client*> client = context.client();
  if (!client.ok()) return client.status();
  v1::ExecRequest first;
  first.mutable_open()->set_job(job);
  first.mutable_open()->set_task(task);
  for (const std::string& word :
       {SlurmProgram(context.config), std::string("slurmstepd"), std::string("step")})
    first.mutable_open()->add_command(word);
  const absl::Time end = absl::Now() + kMostPatience;
  for (;;) {
    auto call = std::make_unique<grpc::ClientContext>();
    std::unique_ptr<ExecStream> stream = (*client)->stub<v1::JobService>().Exec(call.get());
    v1::ExecResponse began;
    stream->Write(first);
    if (stream->Read(&began)) {
      auto link = std::make_unique<RemoteLink>(std::move(call), std::move(stream));
      if (absl::Status status = link->Begin(); !status.ok()) return status;
      return link;
    }
    const absl::Status status = FromGrpcStatus(stream->Finish());
    // A sibling starts a little later; too many commands run at the moment.
    const bool again = absl::IsFailedPrecondition(status) || absl::IsUnavailable(status) ||
                       absl::IsResourceExhausted(status);
    if (!again || absl::Now() > end) return status;
    absl::SleepFor(kBetweenTries);
  }
}

}  // namespace berth
