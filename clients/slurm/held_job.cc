#include "clients/slurm/held_job.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "clients/slurm/job_end.h"
#include "clients/slurm/submit.h"

namespace berth {
namespace {

using HoldStream = grpc::ClientReaderWriterInterface<v1::ExecRequest, v1::ExecResponse>;
constexpr absl::Duration kBetweenHolds = absl::Milliseconds(200);
constexpr int kMostHolds = 50;
constexpr int kLookMs = 20;

absl::Status CancelHeld(SlurmContext& context, const std::string& name) {
  v1::CancelJobRequest request;
  request.set_name(name);
  return context.Call(&v1::JobService::StubInterface::CancelJob, request).status();
}

class Held final : public HeldJob {
 public:
  Held(SlurmContext& context, std::string name, uint64_t uid)
      : context_(context), name_(std::move(name)), number_(absl::StrCat(uid)) {}
  ~Held() override { End(); }
  const std::string& number() const override { return number_; }

  // Opens the command whose end is the job's.
  absl::Status Keep() {
    const absl::StatusOr<Client*> client = context_.client();
    if (!client.ok()) return client.status();
    v1::ExecRequest first;
    first.mutable_open()->set_job(name_);
    for (const std::string& word :
         {SlurmProgram(context_.config), std::string("slurmstepd"), std::string("hold")})
      first.mutable_open()->add_command(word);
    absl::Status status;
    for (int tries = 0; tries < kMostHolds; ++tries) {
      call_ = std::make_unique<grpc::ClientContext>();
      stream_ = (*client)->stub<v1::JobService>().Exec(call_.get());
      v1::ExecResponse began;
      stream_->Write(first);
      if (stream_->Read(&began)) return absl::OkStatus();
      status = FromGrpcStatus(stream_->Finish());
      stream_.reset();
      absl::SleepFor(kBetweenHolds);
    }
    return status;
  }

  void End() override {
    if (std::exchange(ended_, true)) return;
    if (stream_ == nullptr) {
      static_cast<void>(CancelHeld(context_, name_));
      return;
    }
    v1::ExecRequest end;
    end.set_input_end(true);
    stream_->Write(end);
    v1::ExecResponse answer;
    while (stream_->Read(&answer)) {
    }
    stream_->Finish();
  }

 private:
  SlurmContext& context_;
  const std::string name_, number_;
  std::unique_ptr<grpc::ClientContext> call_;
  std::unique_ptr<HoldStream> stream_;
  bool ended_ = false;
};

// Waits for the start in a thread, so that signals can cancel the job.
absl::StatusOr<v1::JobState> AwaitStart(SlurmContext& context, const std::string& name,
                                        SignalEvents& events) {
  absl::StatusOr<v1::JobState> state = absl::UnknownError("");
  std::atomic<bool> done = false;
  std::thread waiter([&] {
    state = AwaitJobStart(context, name);
    done = true;
  });
  bool cancelled = false;
  while (!done) {
    pollfd fd{events.fd(), POLLIN, 0};
    poll(&fd, 1, kLookMs);
    for (int signal = events.Take(); signal != 0; signal = events.Take()) {
      const bool ends = signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
      if (!ends || std::exchange(cancelled, true)) continue;
      auto other = OpenSlurm(context.command);  // a client is for one thread
      if (other.ok()) static_cast<void>(CancelHeld(*other, name));
    }
  }
  waiter.join();
  if (cancelled) return absl::CancelledError("Job allocation has been revoked");
  return state;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HeldJob>> HoldJob(SlurmContext& context, AllocationRequest* request,
                                                 bool says, SignalEvents& events) {
  cli::v1::SlurmBatch batch;
  auto job = PrepareJob(context, request, &batch);
  if (!job.ok()) return job.status();
  const auto submitted = SubmitSlurmJob(context, *std::move(job), batch);
  if (!submitted.ok()) return submitted.status();
  auto held = std::make_unique<Held>(context, submitted->name(), submitted->uid());
  if (says)
    context.err() << context.command << ": job " << submitted->uid()
                  << " queued and waiting for resources" << std::endl;
  const auto state = AwaitStart(context, submitted->name(), events);
  if (!state.ok()) return state.status();
  if (*state != v1::JOB_RUNNING)
    return absl::FailedPreconditionError(
        absl::StrCat("job ", submitted->uid(), " ended before it ran"));
  if (absl::Status status = held->Keep(); !status.ok()) return status;
  if (says)
    context.err() << context.command << ": job " << submitted->uid()
                  << " has been allocated resources" << std::endl;
  return std::unique_ptr<HeldJob>(std::move(held));
}

}  // namespace berth
