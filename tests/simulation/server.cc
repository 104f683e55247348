#include "tests/simulation/server.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "server/commands/submission.h"
#include "server/config/scheduling.h"
#include "server/controllers/progress_book.h"
#include "server/convert/values.h"
#include "server/loop/history.h"
#include "server/loop/load.h"
#include "server/planning/policy_record.h"
#include "server/reads/read_view.h"
#include "storage/incarnation.h"

namespace berth::simulation {
namespace {

constexpr absl::Duration kLookAgain = absl::Seconds(1);  // like LoopThread and its calls
constexpr absl::Duration kKeepLog = absl::Minutes(10);   // like App
constexpr absl::Duration kDiskRetry = absl::Milliseconds(500);

}  // namespace

// Passes batches to the product's committer, which writes when the disk answers.
class Server::DiskCommitter final : public Committer {
 public:
  DiskCommitter(Server* server, FatalHandler on_fatal)
      : server_(server),
        committer_(server->store_.get(), SyncCommitter::Mode::kOnFlush, std::move(on_fatal)) {}

  void Commit(Batch batch, absl::AnyInvocable<void() &&> on_durable) override {
    committer_.Commit(std::move(batch), std::move(on_durable));
    if (!std::exchange(writing_, true)) Write(server_->dice_.Around(server_->disk.latency));
  }
  uint64_t DurableSequence() const override { return committer_.DurableSequence(); }
  size_t Backlog() const override { return committer_.Backlog(); }
  std::string PausedReason() const override { return committer_.PausedReason(); }
  void Finish() {
    while (committer_.Backlog() > 0 && committer_.Flush()) {
    }
  }
  void Crash(Dice& dice) { committer_.Crash(dice.Below(committer_.Backlog() + 1)); }

 private:
  void Write(absl::Duration in) {
    server_->scheduler_->After(in, server_->actor_, [this] {
      server_->trace_->Add(server_->scheduler_->now(), "sync",
                           static_cast<int64_t>(committer_.Backlog()));
      const bool written = committer_.Flush();
      writing_ = committer_.Backlog() > 0;
      if (writing_) Write(written ? server_->dice_.Around(server_->disk.latency) : kDiskRetry);
    });
  }

  Server* const server_;
  SyncCommitter committer_;
  bool writing_ = false;
};

// One process of berthd, wired as App::Load and App::Wire do, without gRPC and threads.
struct Server::Process {
  explicit Process(Server& server)
      : committer(&server, [&server](const absl::Status& status) {
          server.fail_(absl::StrCat("the store failed: ", status.ToString()));
        }) {}

  Preserved preserved;
  RequestTable requests;
  JobDefaults defaults;
  Policies policies, held_policies;
  DiskCommitter committer;
  std::unique_ptr<Loop> loop;
  std::unique_ptr<LeaseKeeper> leases;
  std::unique_ptr<Dispatcher> dispatcher;
  std::unique_ptr<AgentGateway> gateway;
  std::unique_ptr<ProgressBook> told;
  absl::Duration wake = absl::InfiniteDuration();  // time of the earliest scheduled turn
};

Server::Server(const config::v1::Server& config, Scheduler* scheduler, Trace* trace,
               absl::Time start, uint64_t seed, std::function<void(const std::string&)> fail)
    : config_(config),
      scheduler_(scheduler),
      trace_(trace),
      fail_(std::move(fail)),
      dice_(seed, 0x73657276),
      clock_(scheduler, start) {
  Replace();
  actor_->dead = true;
}

void Server::Use(std::unique_ptr<MemoryStore> store) {
  store_ = std::move(store);
  store_->SetFault([this] {
    return disk.full ? absl::ResourceExhaustedError("simulated: the disk is full")
                     : absl::OkStatus();
  });
}

// Incarnations this small do not move job uids (FirstJobOf): uids repeat, and only the incarnation
// distinguishes them.
void Server::Restore() {
  Use(backup_->Copy(store_->Incarnation() + 1));
  restored_ = true;
  restored_sequence_ = store_->LastSequence();
}

void Server::Replace() {
  const uint64_t before = store_ == nullptr ? 0 : store_->Incarnation();
  Use(std::make_unique<MemoryStore>(absl::StrCat("simulated-", before), kStoreFormat, before + 1));
  backup_.reset();
}

Server::~Server() {
  if (up()) Crash();
}

AgentGateway* Server::gateway() { return up() ? process_->gateway.get() : nullptr; }

Loop& Server::loop() { return *process_->loop; }

void Server::Start() {
  if (up()) return;
  trace_->Add(scheduler_->now(), "berthd starts", static_cast<int64_t>(store_->LastSequence()));
  ++processes_;
  actor_ = std::make_shared<Actor>();
  process_ = std::make_unique<Process>(*this);
  Process& p = *process_;
  ClusterState state;
  const absl::Time now = clock_.Now();
  const absl::Status loaded = Load(
      *store_, state,
      [&](StoredRequest request) {
        if (now - request.time <= kRequestRetention) p.requests.Restore(std::move(request));
      },
      &p.preserved);
  if (!loaded.ok()) return fail_(absl::StrCat("berthd cannot load: ", loaded.ToString()));
  absl::StatusOr<GrantedLease> granted = ReadGrantedLease(*store_);
  absl::StatusOr<Policies> policies = Policies::Create(PolicyConfigFrom(config_));
  BERTH_CHECK(granted.ok() && policies.ok());
  // As in storage/restore.h: a backup does not contain later leases.
  if (restored_ && granted->longest > absl::ZeroDuration()) {
    granted->longest = std::max(granted->longest, DurationFrom(config_.stop_lease()));
    granted->restored |= store_->LastSequence() == restored_sequence_;
  }
  p.policies = *std::move(policies);
  const config::v1::Server held = WithoutPlacing(config_);
  p.held_policies = Policies::Create(PolicyConfigFrom(held)).value();
  p.defaults = JobDefaultsFrom(config_);
  p.loop = std::make_unique<Loop>(
      LoopDeps{.clock = &clock_,
               .committer = &p.committer,
               .policies = &p.policies,
               .policy_record = PolicyRecordFrom(config_),
               .held_policies = granted->restored ? &p.held_policies : nullptr,
               .held_record = PolicyRecordFrom(held),
               .preserved = &p.preserved},
      std::move(state), store_->LastSequence());
  p.leases = std::make_unique<LeaseKeeper>(
      p.loop.get(), &clock_,
      LeaseOptions{.lease = DurationFrom(config_.lease()),
                   .fence_margin = DurationFrom(config_.fence_margin()),
                   .brake_share = config_.silent_brake(),
                   .restore_hold =
                       std::max(DurationFrom(config_.lease()), DurationFrom(config_.stop_lease())) +
                       kForeignPatienceMargin,
                   .granted_before = *granted});
  p.dispatcher = std::make_unique<Dispatcher>(store_.get(), &executor_, &clock_);
  p.gateway = std::make_unique<AgentGateway>(
      p.loop.get(), p.leases.get(), p.dispatcher.get(),
      AgentGatewayOptions{
          .heartbeat_interval = DurationFrom(config_.heartbeat_interval()),
          .store = {.cluster_id = store_->ClusterId(), .incarnation = store_->Incarnation()}});
  p.loop->AddObserver(p.dispatcher.get());
  p.told = std::make_unique<ProgressBook>([] { return true; });
  p.gateway->SetProgressBook(p.told.get());
  p.loop->AddObserver(p.told.get());
  p.loop->SetWaker([this] { Wake(); });
  p.leases->Start();
  Every(p.leases->TickPeriod(), [&p] { p.leases->Tick(); });
  Every(kLookAgain, [&p] { p.loop->ExpireReaders(); });
  Every(kKeepLog, [this] { MaintainLog(); });
  Wake();
}

void Server::Crash() {
  if (!up()) return;
  trace_->Add(scheduler_->now(), "berthd dies", static_cast<int64_t>(store_->LastSequence()));
  actor_->dead = true;
  process_->committer.Crash(dice_);
  process_->gateway.reset();
  process_->leases.reset();
  process_->dispatcher.reset();
  process_->loop.reset();
  process_.reset();
}

void Server::GrantLongerLease() {
  if (!up()) return;
  trace_->Add(scheduler_->now(), "berthd grants a longer lease");
  const absl::Status posted = process_->loop->Post(
      [p = process_.get(), how_long = DurationFrom(config_.stop_lease())](berth::Turn& turn) {
        p->leases->BeginPause(turn, how_long, true, [p] { p->gateway->GrantLongerLeases(); });
      },
      CommandClass::kEssential);
  if (!posted.ok()) trace_->Add(scheduler_->now(), "no longer lease is granted");
}

void Server::Pause(absl::Duration how_long) {
  trace_->Add(scheduler_->now(), "berthd paused");
  actor_->paused_until = std::max(actor_->paused_until, scheduler_->now() + how_long);
}

void Server::Every(absl::Duration period, std::function<void()> call) {
  scheduler_->After(period, actor_, [this, period, call = std::move(call)]() mutable {
    call();
    Every(period, std::move(call));
  });
}

void Server::MaintainLog() {
  const absl::Duration history = DurationFrom(config_.history());
  const absl::StatusOr<bool> renewed = RenewBase(*store_, clock_.Now(), history);
  if (renewed.ok() && *renewed) process_->loop->Replan();
  const absl::Status trimmed = TrimHistory(*store_, clock_.Now(), history);
  if (!renewed.ok() || !trimmed.ok()) {
    fail_(absl::StrCat("the log cannot be kept: ", renewed.status().ToString(), ", ",
                       trimmed.ToString()));
  }
}

// ---- The loop, driven like LoopThread does

void Server::Wake() { Plan(scheduler_->now()); }

void Server::Plan(absl::Duration at) {
  if (process_ == nullptr || process_->loop == nullptr || at >= process_->wake) return;
  process_->wake = at;
  scheduler_->At(at, actor_, [this, at] {
    if (at != process_->wake) return;
    process_->wake = absl::InfiniteDuration();
    RunTurn();
  });
}

void Server::Settle() {
  while (process_->loop->RunTurn() == TurnResult::kWorked) {
  }
  process_->committer.Finish();
}

void Server::RunTurn() {
  switch (process_->loop->RunTurn()) {
    case TurnResult::kWorked:
      return Plan(scheduler_->now() + DurationFrom(config_.coalescing_window()));
    case TurnResult::kIdle: {
      const absl::Duration sleep = process_->loop->NextWake() - clock_.Now();
      return Plan(scheduler_->now() + std::clamp(sleep, absl::ZeroDuration(), kLookAgain));
    }
    case TurnResult::kBlocked:
      return Plan(scheduler_->now() + kLookAgain);
  }
}

// ---- Requests, handled like the services do

void Server::Change(CommandClass command_class, std::function<absl::Status(berth::Turn&)> change,
                    std::function<void(absl::Status)> answer) {
  if (!up()) return answer(absl::UnavailableError("connection refused"));
  const absl::Status posted = process_->loop->Post(
      [change = std::move(change), answer](berth::Turn& turn) {
        const absl::Status status = change(turn);
        turn.OnDurable([answer, status] { answer(status); });
      },
      command_class);
  if (!posted.ok()) answer(posted);
}

void Server::Submit(std::shared_ptr<const v1::SubmitJobsRequest> request, Answer answer) {
  if (!up()) return answer(absl::UnavailableError("connection refused"), {});
  ReadView view(*process_->loop);
  absl::StatusOr<CheckedSubmission> checked =
      CheckSubmission(view, *request, config_.limits(), store_->Format());
  if (!checked.ok()) return answer(checked.status(), {});
  auto response = std::make_shared<v1::SubmitJobsResponse>();
  auto submission =
      std::make_shared<Submission>(*std::move(checked), config_.limits(), process_->defaults);
  Change(
      CommandClass::kNewWork,
      [this, request, response, submission](berth::Turn& turn) {
        return submission->Commit(turn, process_->requests, FirstJobOf(store_->Incarnation()),
                                  *response);
      },
      [response, answer](absl::Status status) { answer(status, *response); });
}

}  // namespace berth::simulation
