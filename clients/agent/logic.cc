#include "clients/agent/logic.h"

#include <algorithm>
#include <set>
#include <utility>

#include "support/proto_time.h"

namespace berth {
namespace {

constexpr absl::Duration kSlowRetry = absl::Seconds(30);  // an operator must act first
constexpr size_t kMaxUnackedHeartbeats = 64;
constexpr absl::Duration kImagesInterval = absl::Seconds(5);

std::map<std::string, int> DeviceBounds(const v1::NodeInventory& inventory) {
  std::map<std::string, int> bounds;
  for (const v1::Device& device : inventory.devices()) {
    bounds[device.uuid()] = 10 * std::max(device.oversubscription(), 100);
  }
  return bounds;
}

}  // namespace

AgentLogic::AgentLogic(Options options, ServerLink& link, Journal& journal, TaskRunner& runner,
                       LogSource& logs, Random& random)
    : options_(std::move(options)),
      link_(link),
      runner_(runner),
      random_(random),
      book_({.devices = DeviceBounds(options_.inventory), .keep_ended = options_.keep_ended},
            journal, runner, [this](const v1::TaskReport& report) { SendReport(report); }),
      progress_([this](const TaskId& id) { return book_.ReportedLaunch(id) != nullptr; },
                [this](v1::Progress progress) {
                  v1::AgentMessage message;
                  *message.mutable_progress() = std::move(progress);
                  Send(std::move(message));
                }),
      pump_(
          logs, [this](const TaskId& id) { return book_.Ended(id); },
          [this](v1::LogChunk chunk) {
            v1::AgentMessage message;
            *message.mutable_log() = std::move(chunk);
            Send(std::move(message));
          }),
      inventory_(options_.inventory),
      backoff_(link.servers() > 1 ? kReconnectToSeveral : kReconnect, &random) {}

void AgentLogic::Begin(Instant now, const Recovered& recovered) {
  book_.Recover(now, recovered.journal, recovered.rebooted);
  lease_deadline_ = recovered.lease_deadline;
  // The remainder may belong to a longer lease, which the first Welcome ends.
  if (lease_deadline_) held_ = std::max(held_, *lease_deadline_ - now.steady);
  // Strict tasks without a known lease must not run on unbounded.
  if (!lease_deadline_ && book_.live() > 0) lease_deadline_ = now.steady;
  CheckLease(now);
  Connect(now);
}

// Sends Hello at once; the response shows whether the server is there.
void AgentLogic::Connect(Instant now) {
  if (ForeignEnded()) foreign_until_.reset();
  link_.Connect();
  v1::AgentMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_node(options_.node);
  hello.set_agent_id(options_.agent_id);
  hello.set_boot_id(options_.boot_id);
  hello.set_agent_version(options_.version);
  hello.set_knows_incarnations(true);
  hello.set_cluster_id(book_.store().cluster_id);
  hello.set_incarnation(book_.store().incarnation);
  hello.set_epoch(book_.store().epoch);
  hello.set_node_id(book_.store().node_id);
  hello.set_greatest_job(book_.GreatestJob());
  hello.set_takes_prefetch(images_ != nullptr);
  *hello.mutable_inventory() = inventory_;
  for (v1::TaskReport& report : book_.HelloReports()) *hello.add_tasks() = std::move(report);
  state_ = State::kHelloSent;
  hello_sent_ = now.steady;
  deadline_ = now.steady + std::min(kMaxHelloTimeout, lease_ / 2);
  link_.Send(message);
}

void AgentLogic::OnServerMessage(Instant now, const v1::ServerMessage& message) {
  CheckLease(now);  // before a Start that was buffered while this machine slept
  switch (message.message_case()) {
    case v1::ServerMessage::kWelcome:
      return OnWelcome(now, message);
    case v1::ServerMessage::kRefused:
      return OnRefused(now, message.refused());
    default:
      break;
  }
  if (state_ != State::kRegistered || !Obey(now, book_.NoteTerm(message.term()))) return;
  OnTaskMessage(now, message);
  pump_.Pump(now.steady, [this] { return link_.QueuedBytes(); });
}

// False, and the connection is over: the server's term is an earlier one, or a new one could not be
// recorded.
bool AgentLogic::Obey(Instant now, const absl::Status& term) {
  if (term.ok()) return true;
  link_.Disconnect();
  Retry(now, absl::ZeroDuration(),
        absl::IsFailedPrecondition(term)
            ? term.message()
            : absl::StrCat("cannot record the server's term: ", term.message()));
  return false;
}

void AgentLogic::OnTaskMessage(Instant now, const v1::ServerMessage& message) {
  switch (message.message_case()) {
    case v1::ServerMessage::kHeartbeatAck:
      return OnHeartbeatAck(now, message.heartbeat_ack());
    case v1::ServerMessage::kReportAck:
      return book_.Ack(message.report_ack().report_id());
    case v1::ServerMessage::kPrepare:
      if (IsOurs(message.prepare().key())) book_.Prepare(now, message.prepare(), LeaseHolds(now));
      return;
    case v1::ServerMessage::kStart:
      if (IsOurs(message.start().key())) book_.Start(now, message.start());
      return;
    case v1::ServerMessage::kKill:
      if (IsOurs(message.kill().key())) book_.Kill(now, message.kill());
      return;
    case v1::ServerMessage::kSignalTask:
      if (IsOurs(message.signal_task().key())) book_.Signal(message.signal_task());
      return;
    case v1::ServerMessage::kFreezeTask:
      if (IsOurs(message.freeze_task().key())) book_.Freeze(message.freeze_task());
      return;
    case v1::ServerMessage::kReadLog:
      if (IsOurs(message.read_log().key())) return pump_.Open(now.steady, message.read_log());
      return RefuseLog(message.read_log());
    case v1::ServerMessage::kCancelLog:
      return pump_.Cancel(message.cancel_log().request());
    case v1::ServerMessage::kOpenExec:
      return OpenExec(message.open_exec());
    case v1::ServerMessage::kDivideGpu:
      if (divider_ != nullptr) divider_->Divide(message.divide_gpu());
      return;
    case v1::ServerMessage::kDropFiles:
      return DropFiles(message.drop_files());
    case v1::ServerMessage::kPrefetch:
      if (images_ != nullptr) images_->Prefetch(message.prefetch());
      return;
    case v1::ServerMessage::kExecInput:
      if (execs_ != nullptr) execs_->Input(message.exec_input());
      return;
    default:
      return;  // from a newer server: a feature that this agent did not announce
  }
}

// A Welcome acknowledges Hello, for this connection only: a second Welcome must bring a newer
// epoch.
void AgentLogic::OnWelcome(Instant now, const v1::ServerMessage& message) {
  const v1::Welcome& welcome = message.welcome();
  if (state_ == State::kRegistered && welcome.epoch() <= epoch_) return;
  if (state_ != State::kHelloSent && state_ != State::kRegistered) return;
  if (!Join(now, message)) return;
  if (welcome.has_lease()) lease_ = DurationFrom(welcome.lease());
  if (!TakeLease(now, hello_sent_, lease_)) {
    // Without the lease file, no message of the new epoch may end the longer lease.
    link_.Disconnect();
    return Retry(now, absl::ZeroDuration(), "cannot write the lease granted by Welcome");
  }
  last_acked_ = {0, hello_sent_};
  state_ = State::kRegistered;
  link_.Stay();
  backoff_.Reset();
  epoch_ = welcome.epoch();
  takes_progress_ = welcome.takes_progress();
  takes_kept_files_ = welcome.takes_kept_files();
  kept_files_at_ = now.steady;
  takes_images_ = welcome.takes_images() && images_ != nullptr;
  images_at_ = now.steady;
  sent_images_.reset();
  if (welcome.has_heartbeat_interval())
    heartbeat_interval_ = DurationFrom(welcome.heartbeat_interval());
  heartbeat_interval_ = std::max(heartbeat_interval_, absl::Milliseconds(10));
  unacked_heartbeats_.clear();
  // The first heartbeat comes at a random part of the interval, to spread out nodes that registered
  // together.
  heartbeat_at_ = now.steady + heartbeat_interval_ * random_.Unit();
  for (const v1::TaskKey& key : welcome.forget()) book_.Forget(now, ToTaskId(key));
  SendLastProgress();
  for (const v1::TaskReport& report : book_.Unacked()) SendReport(report);
  SendConditions();
  if (SendsProgress()) progress_.SendAll(now);
}

// Repeated, so that nobody needs to remember who keeps what where. Those of another incarnation
// have nobody who would come back for them.
void AgentLogic::SendKeptFiles(Instant now) {
  kept_files_at_ = now.steady + kKeptFilesInterval;
  if (kept_ == nullptr || !takes_kept_files_) return;
  v1::AgentMessage message;
  v1::KeptFiles& files = *message.mutable_kept_files();
  for (const TaskId& job : kept_->Jobs()) {
    if (job.incarnation != book_.store().incarnation) {
      if (!book_.HasLive(job)) kept_->Drop(job);
      continue;
    }
    files.add_job_uids(job.job_uid);
    if (files.job_uids_size() < kMaxKeptFiles) continue;
    Send(message);
    files.clear_job_uids();
  }
  if (files.job_uids_size() > 0) Send(std::move(message));
}

// Other agents of this machine may change them, too, so they are looked at in any case.
void AgentLogic::SendImages(Instant now) {
  images_at_ = now.steady + kImagesInterval;
  v1::AgentMessage message;
  *message.mutable_images() = images_->Images();
  std::string bytes = message.images().SerializeAsString();
  if (sent_images_ == bytes) return;
  sent_images_ = std::move(bytes);
  Send(std::move(message));
}

void AgentLogic::DropFiles(const v1::DropFiles& request) {
  if (kept_ == nullptr) return;
  for (const uint64_t uid : request.job_uids()) {
    const TaskId job = {.job_uid = uid, .incarnation = book_.store().incarnation};
    if (!book_.HasLive(job)) kept_->Drop(job);
  }
}

// Of tasks that have ended in the meantime: before their reports.
void AgentLogic::SendLastProgress() {
  if (!SendsProgress()) return;
  std::vector<TaskId> ended;
  for (const v1::TaskReport& report : book_.Unacked()) {
    if (report.state() == v1::TaskReport::EXITED) ended.push_back(ToTaskId(report.key()));
  }
  progress_.SendEnded(ended);
}

// Returns false while foreign tasks live, or if the server is not obeyed. Nothing was sent with the
// new epoch, so the server does not treat them as gone yet.
bool AgentLogic::Join(Instant now, const v1::ServerMessage& message) {
  const v1::Welcome& welcome = message.welcome();
  const StoreMembership store = {.cluster_id = welcome.cluster_id(),
                                 .incarnation = welcome.incarnation(),
                                 .epoch = welcome.epoch(),
                                 .node_id = welcome.node_id(),
                                 .term = message.term()};
  const size_t before = book_.foreign_live();
  if (!Obey(now, book_.CheckTerm(store)) || !Obey(now, book_.Join(now, store))) return false;
  const bool patient = book_.foreign_live() > before || !foreign_until_.has_value() ||
                       now.steady < *foreign_until_ || book_.ForeignIdsLive();
  if (book_.foreign_live() == 0 || !patient) {
    foreign_until_.reset();
    return true;
  }
  foreign_until_ = now.steady + kForeignTimeout;
  link_.Disconnect();
  Retry(now, absl::ZeroDuration(), "ending tasks of another incarnation of the cluster");
  deadline_ = *foreign_until_;
  return false;
}

void AgentLogic::RefuseLog(const v1::ReadLog& request) {
  v1::AgentMessage message;
  message.mutable_log()->set_request(request.request());
  message.mutable_log()->set_end(true);
  message.mutable_log()->set_error("the task belongs to another incarnation of the cluster");
  Send(std::move(message));
}

void AgentLogic::OpenExec(const v1::OpenExec& request) {
  if (execs_ != nullptr && IsOurs(request.key()) && book_.Running(ToTaskId(request.key())))
    return execs_->Open(request);
  v1::ExecOutput end;
  end.set_request(request.request());
  end.set_end(true);
  end.set_error(execs_ == nullptr ? "this agent does not support commands inside tasks"
                                  : "the task is not running");
  OnExecOutput(std::move(end));
}

void AgentLogic::OnExecOutput(v1::ExecOutput output) {
  if (state_ != State::kRegistered) return;
  v1::AgentMessage message;
  *message.mutable_exec() = std::move(output);
  Send(std::move(message));
}

void AgentLogic::SetConditions(v1::NodeConditions conditions) {
  conditions_ = std::move(conditions);
  SendConditions();
}

void AgentLogic::SetInventory(Instant now, v1::NodeInventory inventory) {
  book_.SetDevices(DeviceBounds(inventory));
  inventory_ = std::move(inventory);
  Reconnect(now);  // Hello includes it
}

void AgentLogic::Reconnect(Instant now) {
  if (state_ == State::kWaiting) return;  // it does soon
  CheckLease(now);
  link_.Disconnect();
  pump_.Clear();
  if (execs_ != nullptr) execs_->Clear();
  Connect(now);
}

void AgentLogic::SendConditions() {
  if (state_ != State::kRegistered || !conditions_) return;
  v1::AgentMessage message;
  *message.mutable_conditions() = *conditions_;
  Send(std::move(message));
}

void AgentLogic::OnRefused(Instant now, const v1::Refused& refused) {
  absl::Duration wait = DurationFrom(refused.retry_after());
  if (refused.code() == v1::Refused::NAME_IN_USE || refused.code() == v1::Refused::INVALID) {
    wait = std::max(wait, kSlowRetry);
  }
  link_.Disconnect();
  Retry(now, wait,
        absl::StrCat("refused: ", v1::Refused::Code_Name(refused.code()), ": ", refused.message()));
}

void AgentLogic::OnDisconnected(Instant now, absl::string_view reason) {
  if (state_ == State::kWaiting) return;
  CheckLease(now);
  Retry(now, absl::ZeroDuration(), reason);
}

// Full jitter, to spread out the agents of a restarted server. Other servers are tried at once.
void AgentLogic::Retry(Instant now, absl::Duration at_least, absl::string_view reason) {
  state_ = State::kWaiting;
  const std::string server = link_.server();
  last_error_ = absl::StrCat(server, server.empty() ? "" : ": ", reason);
  const bool at_once = link_.Leave() && at_least <= absl::ZeroDuration();
  deadline_ = at_once ? now.steady : now.steady + backoff_.Next(at_least);
  pump_.Clear();
  if (execs_ != nullptr) execs_->Clear();
}

// Between two heartbeats, the server repeats the last ack with a longer lease: it needs
// confirmation that the agent received it.
void AgentLogic::OnHeartbeatAck(Instant now, const v1::HeartbeatAck& ack) {
  const bool repeated = ack.sequence() == last_acked_.sequence;
  while (!unacked_heartbeats_.empty() && unacked_heartbeats_.front().sequence <= ack.sequence()) {
    const Sent sent = unacked_heartbeats_.front();
    unacked_heartbeats_.pop_front();
    if (sent.sequence == ack.sequence()) last_acked_ = sent;
  }
  if (ack.sequence() != last_acked_.sequence) return;
  absl::Duration length = lease_;
  if (ack.has_lease())
    length = std::clamp(DurationFrom(ack.lease()), lease_, std::max(lease_, kLongestLease));
  if (repeated && !ack.has_lease() && held_ <= lease_) return;  // repeated, with no longer lease
  TakeLease(now, last_acked_.when, length);
  if (repeated && ack.has_lease()) SendHeartbeat(now);
}

bool AgentLogic::TakeLease(Instant now, absl::Duration from, absl::Duration length) {
  const absl::Duration deadline = from + length;
  const bool shorter = lease_deadline_ && deadline < *lease_deadline_ && held_ > lease_;
  if (!shorter && lease_deadline_ && deadline <= *lease_deadline_) return true;
  if (shorter && deadline <= now.steady) return false;
  const absl::Duration soon = std::min(deadline, std::max(from, now.steady) + lease_);
  if (!runner_.SetLease(soon, deadline) && shorter) return false;
  lease_deadline_ = deadline;
  legacy_deadline_ = soon;
  held_ = length;
  fenced_ = false;
  return true;
}

void AgentLogic::StepLease(Instant now) {
  if (fenced_ || !lease_deadline_ || legacy_deadline_ >= *lease_deadline_) return;
  if (now.steady < legacy_deadline_ - lease_ / 2) return;
  legacy_deadline_ = std::min(*lease_deadline_, now.steady + lease_);
  runner_.SetLease(legacy_deadline_, *lease_deadline_);
}

bool AgentLogic::LeaseHolds(Instant now) const {
  return lease_deadline_ && now.steady < *lease_deadline_;
}

void AgentLogic::CheckLease(Instant now) {
  if (fenced_ || !lease_deadline_ || now.steady < *lease_deadline_) return;
  fenced_ = true;
  book_.Fence(now);
}

void AgentLogic::OnTaskEvent(Instant now, const TaskEvent& event) {
  CheckLease(now);
  if (event.kind == TaskEvent::Kind::kPreparing) {
    return progress_.SetPreparing(event.id, event.message);
  }
  const bool over =
      event.kind == TaskEvent::Kind::kExited || event.kind == TaskEvent::Kind::kRefused;
  if (over && execs_ != nullptr) execs_->EndTask(event.id);
  if (over) progress_.Remove(now, event.id, SendsProgress());
  if (over) kept_files_at_ = std::min(kept_files_at_, now.steady + kKeptFilesSoon);
  if (event.kind == TaskEvent::Kind::kPaused || event.kind == TaskEvent::Kind::kResumed) {
    progress_.SetPaused(now, event);
  }
  book_.OnEvent(now, event);
  if (event.kind != TaskEvent::Kind::kRunning) return;
  if (const v1::TaskLaunch* launch = book_.ReportedLaunch(event.id); launch != nullptr)
    progress_.Add(now, event, *launch);
}

void AgentLogic::SendHeartbeat(Instant now) {
  v1::AgentMessage message;
  v1::Heartbeat& heartbeat = *message.mutable_heartbeat();
  heartbeat.set_sequence(++heartbeat_sequence_);
  heartbeat.set_acked(last_acked_.sequence);
  ToProto(held_, heartbeat.mutable_lease());
  unacked_heartbeats_.push_back({heartbeat_sequence_, now.steady});
  if (unacked_heartbeats_.size() > kMaxUnackedHeartbeats) unacked_heartbeats_.pop_front();
  heartbeat_at_ = now.steady + heartbeat_interval_;
  Send(std::move(message));
}

void AgentLogic::Tick(Instant now) {
  CheckLease(now);
  StepLease(now);
  book_.Tick(now);
  switch (state_) {
    case State::kWaiting:
      if (now.steady < deadline_ && !ForeignEnded()) break;
      Connect(now);
      break;
    case State::kHelloSent:
      if (now.steady < deadline_) break;
      link_.Disconnect();
      Retry(now, absl::ZeroDuration(), "no response to Hello");
      break;
    case State::kRegistered:
      // No heartbeat was acknowledged for so long: the stream is dead, whatever the transport
      // reports.
      if (!unacked_heartbeats_.empty() &&
          now.steady >= unacked_heartbeats_.front().when + Patience()) {
        link_.Disconnect();
        Retry(now, absl::ZeroDuration(), "heartbeats are not acknowledged");
        break;
      }
      if (now.steady >= heartbeat_at_) {
        SendHeartbeat(now);
        if (takes_progress_) progress_.SendChanges(now);
      }
      if (now.steady >= kept_files_at_) SendKeptFiles(now);
      if (takes_images_ && now.steady >= images_at_) SendImages(now);
      pump_.Pump(now.steady, [this] { return link_.QueuedBytes(); });
      break;
  }
}

absl::Duration AgentLogic::NextWake() const {
  absl::Duration next = book_.NextWake();
  if (lease_deadline_ && !fenced_) {
    next = std::min(next, *lease_deadline_);
    if (legacy_deadline_ < *lease_deadline_) next = std::min(next, legacy_deadline_ - lease_ / 2);
  }
  if (state_ == State::kWaiting || state_ == State::kHelloSent) next = std::min(next, deadline_);
  if (state_ == State::kWaiting && ForeignEnded()) next = absl::ZeroDuration();
  if (state_ == State::kRegistered) next = std::min({next, heartbeat_at_, pump_.NextWake()});
  if (state_ == State::kRegistered && link_.servers() > 1 && !unacked_heartbeats_.empty())
    next = std::min(next, unacked_heartbeats_.front().when + Patience());
  if (state_ == State::kRegistered && kept_ != nullptr) next = std::min(next, kept_files_at_);
  if (state_ == State::kRegistered && takes_images_) next = std::min(next, images_at_);
  return next;
}

void AgentLogic::Send(v1::AgentMessage message) {
  message.set_epoch(epoch_);
  link_.Send(message);
}

void AgentLogic::SendReport(const v1::TaskReport& report) {
  if (state_ != State::kRegistered) return;
  v1::AgentMessage message;
  *message.mutable_report() = report;
  Send(std::move(message));
}

}  // namespace berth
