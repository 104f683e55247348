#include "tests/simulation/ha/host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "server/commands/default_queue.h"
#include "server/commands/request_table.h"
#include "server/controllers/lease_keeper.h"
#include "server/convert/queue.h"
#include "server/loop/committer.h"
#include "server/loop/load.h"
#include "server/reads/read_view.h"

namespace berth::simulation {
namespace {

constexpr absl::Duration kSecond = absl::Seconds(1);
constexpr absl::Duration kRestart = absl::Seconds(1);

// The wall clock jumps; the steady one does not.
class HostClock final : public Clock {
 public:
  HostClock(const Scheduler* scheduler, const absl::Duration* jumped)
      : scheduler_(*scheduler), jumped_(*jumped) {}
  absl::Time Now() override {
    return absl::FromUnixSeconds(1'800'000'000) + scheduler_.now() + jumped_;
  }
  absl::Duration Steady() override { return scheduler_.now() + absl::Hours(1); }

 private:
  const Scheduler& scheduler_;
  const absl::Duration& jumped_;
};

}  // namespace

// The host's disk, which outlives the process.
class Host::Disk final : public LocalStore {
 public:
  explicit Disk(MemoryStore* store) : store_(*store) {}
  absl::Status Load(
      absl::FunctionRef<absl::Status(RecordKind, absl::string_view, absl::string_view)> visit)
      override {
    return store_.Load(visit);
  }
  uint64_t LastSequence() const override { return store_.LastSequence(); }
  std::string ClusterId() const override { return store_.ClusterId(); }
  uint64_t Incarnation() const override { return store_.Incarnation(); }
  absl::Status Append(const std::vector<const Batch*>& batches) override {
    return store_.Append(batches);
  }
  absl::StatusOr<std::string> Read(RecordKind kind, absl::string_view key) const override {
    return store_.Read(kind, key);
  }
  absl::StatusOr<std::vector<LogEntry>> ReadLog(uint64_t after, size_t limit) const override {
    return store_.ReadLog(after, limit);
  }
  absl::Status TrimLog(uint64_t sequence) override { return store_.TrimLog(sequence); }
  ChainHash LastHash() const override { return store_.LastHash(); }
  absl::Status AppendBehind(const std::vector<const Batch*>& batches) override {
    return store_.AppendBehind(batches);
  }
  absl::Status Sync() override { return store_.Sync(); }
  uint64_t SyncedSequence() const override { return store_.SyncedSequence(); }

 private:
  MemoryStore& store_;
};

// Writes some time after the turn, as a thread would.
class Host::Committing final : public Committer {
 public:
  Committing(Host* host, Store* store)
      : host_(*host),
        committer_(store, SyncCommitter::Mode::kOnFlush, [host](const absl::Status& status) {
          host->around_.fail(absl::StrCat(host->name(), ": the store failed: ", status.ToString()));
          throw ProcessEnds();
        }) {}
  void Commit(Batch batch, absl::AnyInvocable<void() &&> on_durable) override {
    committer_.Commit(std::move(batch), std::move(on_durable));
    if (!std::exchange(writing_, true)) Write(absl::Milliseconds(2));
  }
  uint64_t DurableSequence() const override { return committer_.DurableSequence(); }
  size_t Backlog() const override { return committer_.Backlog(); }
  std::string PausedReason() const override { return committer_.PausedReason(); }

 private:
  void Write(absl::Duration in) {
    host_.around_.scheduler->After(host_.dice_.Around(in), host_.actor_, [this] {
      host_.Run([this] {
        committer_.Flush();
        writing_ = committer_.Backlog() > 0;
        if (writing_) Write(absl::Milliseconds(20));
      });
    });
  }
  Host& host_;
  SyncCommitter committer_;
  bool writing_ = false;
};

struct Host::Process final : public DurableListener {
  Process(Host* host, ReplicationLayout layout)
      : host(*host),
        clock(host->around_.scheduler, &host->jumped_),
        kv(host->around_.etcd->Connect(&host->client_)),
        log(kv.get(), std::move(layout),
            {.patience = kSecond, .sleep = [host](absl::Duration) { host->Between(); }}),
        store(std::make_unique<Disk>(host->disk_.get()), &log, &clock,
              [](const absl::Status&) { throw ProcessEnds(); }),
        committer(host, &store) {}

  void OnTurnDurable(uint64_t revision, std::shared_ptr<const std::vector<Event>> events,
                     std::shared_ptr<const std::string> turn) override {
    host.around_.on_durable(host, revision, *turn);
    if (!loop->leads()) return;
    for (const Event& event : *events) host.around_.on_event(host, event);
  }

  Host& host;
  HostClock clock;
  std::unique_ptr<Kv> kv;
  ReplicatedLog log;
  ReplicatedStore store;
  Committing committer;
  RequestTable requests;
  Policies policies;
  std::unique_ptr<Member> member;
  std::unique_ptr<Loop> loop;
  std::unique_ptr<LeaseKeeper> leases;
  absl::Duration wake = absl::InfiniteDuration();
};

Host::Host(HostOptions options, Around around, std::unique_ptr<MemoryStore> disk, uint64_t seed)
    : options_(std::move(options)),
      around_(std::move(around)),
      dice_(seed, 0x686f7374),
      disk_(std::move(disk)) {
  client_.between = [this] { Between(); };
  actor_->dead = true;
}

Host::~Host() = default;

bool Host::leads() const { return up() && process_->loop != nullptr && process_->loop->leads(); }
uint64_t Host::term() const {
  return up() && process_->member != nullptr ? process_->member->term() : 0;
}

std::string Host::NameOf(NodeId node) const {
  return process_->loop->Read([&](const ClusterState& state, uint64_t) {
    const Node* found = state.nodes().Find(node);
    return found == nullptr ? std::string() : found->spec.name;
  });
}

// ---- Life of the process

// While a call of etcd is under way, the others go on; sometimes for long, as if this process were
// stopped in the middle of it.
void Host::Between() {
  if (!inside_) return;
  absl::Duration window =
      dice_.Chance(0.3) ? dice_.Around(absl::Milliseconds(3)) : absl::Duration();
  if (!*around_.healed && dice_.Chance(0.0005))
    window = dice_.Between(absl::Seconds(1), absl::Seconds(60));
  const absl::Duration until =
      std::min(std::max(around_.scheduler->now() + window, actor_->paused_until), *around_.horizon);
  actor_->paused_until = std::max(actor_->paused_until, until);
  // This process goes on at `until`, so the others only until just before.
  const absl::Duration limit = until - absl::Nanoseconds(1);
  const absl::Duration before = std::exchange(*around_.horizon, limit);
  while (limit > around_.scheduler->now() && around_.scheduler->Step(limit)) {
  }
  *around_.horizon = before;
  if (ends_) throw ProcessEnds();
}

void Host::Run(const std::function<void()>& work) {
  if (!up()) return;
  BERTH_CHECK(!inside_);
  inside_ = true;
  bool ended = false;
  try {
    work();
  } catch (const ProcessEnds&) {
    ended = true;
  }
  inside_ = false;
  if (ended || ends_) End();
}

void Host::End() {
  actor_->dead = true;
  ends_ = false;
  process_->leases.reset();
  process_->loop.reset();
  process_->member.reset();
  process_.reset();
  if (std::exchange(power_cut_, false)) disk_ = disk_->LosePower(dice_.Below(20));
  auto machine = std::make_shared<Actor>();
  around_.scheduler->After(dice_.Around(kRestart), machine, [this] { Start(); });
}

void Host::Crash(bool power_cut) {
  if (!up()) return;
  power_cut_ |= power_cut;
  if (inside_) {
    ends_ = true;
  } else {
    End();
  }
}

void Host::Pause(absl::Duration how_long) {
  actor_->paused_until = std::max(actor_->paused_until, around_.scheduler->now() + how_long);
}

void Host::SetDiskFull(bool full) {
  disk_->SetFault([full] {
    return full ? absl::ResourceExhaustedError("simulated: the disk is full") : absl::OkStatus();
  });
}

void Host::Start() {
  if (up()) return;
  actor_ = std::make_shared<Actor>();
  auto process =
      std::make_unique<Process>(this, ReplicationLayout(disk_->ClusterId(), disk_->Incarnation()));
  if (!Open(*process)) {
    actor_->dead = true;
    process.reset();
    auto machine = std::make_shared<Actor>();
    around_.scheduler->After(kRestart, machine, [this] { Start(); });
    return;
  }
  process_ = std::move(process);
  ++processes_;
  Drive();
}

// As OpenReplicatedStore and App do. False: not now.
bool Host::Open(Process& p) {
  const absl::StatusOr<ClusterView> view = p.log.Read(disk_->LastSequence(), /*stale=*/false);
  if (!view.ok()) return false;
  if (view->base.through() > disk_->LastSequence()) {
    const MemoryStore* other = around_.other_store(*this);
    if (other != nullptr) disk_ = other->Copy(disk_->Incarnation());
    return false;  // and once more
  }
  ClusterState state;
  const absl::Status loaded = Load(
      p.store, state, [&](StoredRequest request) { p.requests.Restore(std::move(request)); },
      nullptr);
  if (!loaded.ok()) {
    around_.fail(absl::StrCat(name(), " cannot load: ", loaded.ToString()));
    return false;
  }
  p.policies = Policies::Create({}).value();
  p.member = std::make_unique<Member>(
      &p.log, &p.store, &p.clock,
      MemberOptions{.name = name(),
                    .address = name(),
                    // Versions side by side, as in a rolling upgrade.
                    .version = dice_.Chance(0.2) ? "2" : "1",
                    .lease = options_.lease,
                    .poll = options_.poll,
                    .bounds = options_.bounds,
                    .seed = dice_.Seed() | 1},
      MemberHooks{.follow =
                      [&p](const Batch& batch) {
                        for (const Record& record : batch.records) {
                          if (record.kind != RecordKind::kRequest || !record.value) continue;
                          p.requests.Restore(
                              DecodeRequestRecord(record.key, *record.value, nullptr).value());
                        }
                        return p.loop->Follow(batch);
                      },
                  .lead =
                      [this, &p](uint64_t) {
                        ++terms_led_;
                        p.loop->AcceptCommands();
                        p.leases->Start(ReadGrantedLease(p.store).value());
                        BERTH_CHECK(MakeDefaultQueue(*p.loop).ok());
                        p.loop->Lead();
                      },
                  .end = [](const absl::Status&) { throw ProcessEnds(); }});
  p.loop = std::make_unique<Loop>(LoopDeps{.clock = &p.clock,
                                           .committer = &p.committer,
                                           .policies = &p.policies,
                                           .leadership = p.member.get()},
                                  std::move(state), disk_->LastSequence());
  p.loop->AddListener(&p);
  p.leases = std::make_unique<LeaseKeeper>(
      p.loop.get(), &p.clock,
      LeaseOptions{.lease = options_.agent_lease, .fence_margin = options_.fence_margin});
  return true;
}

void Host::Drive() {
  Process& p = *process_;
  p.loop->SetWaker([this] { Wake(); });
  StepMember();
  Every(kSecond, [&p] { p.member->Upkeep(); });
  Every(options_.poll, [&p] { p.member->confirmer().Step(); });
  Every(kSecond, [&p] {
    if (p.loop->leads()) p.leases->Tick();
  });
  Every(kSecond, [this, &p] {
    p.loop->ExpireReaders();
    Wake();
    differences_ += p.member->status().differences;
    const std::string why = p.member->status().not_eligible;
    if (p.member->status().differences > 0) around_.fail(absl::StrCat(name(), ": ", why));
  });
}

void Host::StepMember() {
  around_.scheduler->After(dice_.Around(absl::Milliseconds(1)), actor_, [this] {
    absl::Duration wait;
    Run([&] { wait = process_->member->Step(); });
    if (!up()) return;
    around_.scheduler->After(wait, actor_, [this] { StepMember(); });
  });
}

void Host::Every(absl::Duration period, std::function<void()> call) {
  around_.scheduler->After(period, actor_, [this, period, call = std::move(call)]() mutable {
    Run(call);
    if (up()) Every(period, std::move(call));
  });
}

void Host::Wake() { PlanTurn(around_.scheduler->now()); }

void Host::PlanTurn(absl::Duration at) {
  if (!up() || at >= process_->wake) return;
  process_->wake = at;
  around_.scheduler->At(at, actor_, [this, at] {
    if (!up() || at != process_->wake) return;
    process_->wake = absl::InfiniteDuration();
    Run([this] { RunTurn(); });
  });
}

void Host::RunTurn() {
  if (process_->loop->RunTurn() == TurnResult::kWorked) {
    PlanTurn(around_.scheduler->now() + absl::Milliseconds(1));
  }
}

void Host::HandOver() {
  if (!leads() || inside_ || process_->committer.Backlog() > 0) return;
  Run([this] {
    if (!process_->member->CheckSuccessor("").ok()) return;
    process_->loop->Resign();
    process_->member->Resign("").IgnoreError();
    throw ProcessEnds();
  });
}

// ---- Calls

void Host::Change(const std::string& request, std::function<absl::StatusOr<int64_t>(Turn&)> change,
                  Answer answer) {
  Run([&] {
    Process& p = *process_;
    const absl::Status posted = p.loop->Post([&p, request, change, answer](Turn& turn) {
      const auto known = p.requests.Find(request, "f", turn.now());
      BERTH_CHECK(known.ok());
      absl::StatusOr<int64_t> result = int64_t{0};
      if (*known == nullptr) {
        result = change(turn);
        if (result.ok()) p.requests.Remember(turn, {request, "f", turn.now(), ""});
      }
      if (!result.ok()) {
        p.loop->WhenDurable(turn.seen(), [answer, result](const absl::Status& durable) {
          answer(durable.ok() ? result : absl::StatusOr<int64_t>(durable));
        });
        return;
      }
      turn.OnDurable([answer, result] { answer(result); });
    });
    if (!posted.ok()) answer(posted);
  });
}

void Host::Submit(const std::string& job, const std::string& request, Answer answer) {
  Change(
      request,
      [job](Turn& turn) -> absl::StatusOr<int64_t> {
        if (turn.state().FindJob(job) != nullptr) return int64_t{0};
        JobSpec spec;
        spec.name = job;
        const Queue* queue = turn.state().FindQueue(kDefaultQueueName);
        if (queue == nullptr) return absl::UnavailableError("no queue yet");
        spec.queue = queue->id;
        spec.suspended = true;
        spec.min_available = 1;
        spec.groups.emplace_back().name = "w";
        spec.groups.back().shape.cpu_millis = 1000;
        const JobId id = turn.state().next_job_id();
        absl::Status status = turn.Emit(JobSubmitted{id, std::move(spec)});
        if (!status.ok()) return status;
        turn.PutCold(id, std::make_shared<const std::string>("cold"));
        return int64_t{0};
      },
      std::move(answer));
}

void Host::Update(const std::string& job, int32_t priority, const std::string& request,
                  Answer answer) {
  Change(
      request,
      [job, priority](Turn& turn) -> absl::StatusOr<int64_t> {
        const Job* found = turn.state().FindJob(job);
        if (found == nullptr) return absl::NotFoundError(job);
        absl::Status status = turn.Emit(JobUpdated{found->id, priority, {}});
        if (!status.ok()) return status;
        return int64_t{0};
      },
      std::move(answer));
}

void Host::Get(const std::string& job, Answer answer) {
  Run([&] {
    if (!leads()) return answer(absl::UnavailableError("standby"));
    ReadView view(*process_->loop);
    const absl::StatusOr<int64_t> result =
        view.Step([&](const ClusterState& state) -> absl::StatusOr<int64_t> {
          const Job* found = state.FindJob(job);
          if (found == nullptr) return absl::NotFoundError(job);
          return int64_t{found->priority};
        });
    view.Answer([answer, result](const absl::Status& durable) {
      answer(durable.ok() ? result : absl::StatusOr<int64_t>(durable));
    });
  });
}

void Host::Register(const std::string& node, Answer answer) {
  Run([&] {
    Process& p = *process_;
    const absl::Status posted = p.loop->Post(
        [&p, node, answer](Turn& turn) {
          const Node* known = turn.state().FindNode(node);
          NodeSpec spec;
          spec.name = node;
          spec.cpu_millis = 1000;
          const NodeId id = known != nullptr ? known->id : turn.state().next_node_id();
          const uint64_t epoch = known != nullptr ? known->status.epoch + 1 : 1;
          p.leases->RecordGrant(turn);
          const absl::Status status = turn.Emit(NodeRegistered{
              .id = id, .spec = spec, .epoch = epoch, .agent_id = node, .boot_id = "b"});
          if (!status.ok()) return answer(status);
          turn.OnDurable([&p, id, epoch, answer] {
            p.leases->Registered(id, epoch);
            answer(static_cast<int64_t>(epoch));
          });
        },
        CommandClass::kEssential);
    if (!posted.ok()) answer(posted);
  });
}

void Host::Heartbeat(const std::string& node, uint64_t epoch, uint64_t sequence, Answer answer) {
  Run([&] {
    if (!leads()) return answer(absl::UnavailableError("standby"));
    const NodeId id = process_->loop->Read([&](const ClusterState& state, uint64_t) {
      const Node* found = state.FindNode(node);
      return found == nullptr ? NodeId{0} : found->id;
    });
    const auto granted =
        process_->leases->Heartbeat(id, epoch, {.sequence = sequence, .acked = sequence});
    if (!granted.has_value()) return answer(absl::FailedPreconditionError("register again"));
    process_->loop->WhenLeading([answer](const absl::Status& leads) {
      answer(leads.ok() ? absl::StatusOr<int64_t>(int64_t{0}) : absl::StatusOr<int64_t>(leads));
    });
  });
}

}  // namespace berth::simulation
