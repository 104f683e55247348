#include "server/controllers/agent_gateway.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/controllers/conditions.h"
#include "server/controllers/dispatcher.h"
#include "server/controllers/kept_files.h"
#include "server/controllers/lease_keeper.h"
#include "server/controllers/progress_book.h"
#include "server/controllers/registration.h"
#include "server/convert/agent.h"
#include "server/convert/values.h"
#include "server/validation/hello.h"
#include "server/validation/lifecycle.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr int kMaxKeptJobs = 1000;  // of a message

// Older formats know no failed devices: as if the agent had ended the task itself. It is not the
// job's failure either.
void FitFormat(uint32_t store_format, v1::TaskReport* report) {
  if (store_format >= kFormatOfProgress || report->cause() != v1::TaskReport::DEVICE_FAULT) return;
  report->set_cause(v1::TaskReport::LEASE_LAPSED);
}

}  // namespace

AgentGateway::AgentGateway(Loop* loop, LeaseKeeper* leases, Dispatcher* dispatcher,
                           AgentGatewayOptions options)
    : loop_(loop),
      leases_(leases),
      dispatcher_(dispatcher),
      options_(std::move(options)),
      brake_(options_.brake),
      fabric_(options_.fabric_health) {
  TakeOver();
  dispatcher->SetGateway(this);
  dispatcher->SetImages(&images_);
  leases->SetOnSilenced([this](NodeId node, uint64_t epoch) {
    Disconnect(node, epoch, v1::Refused::STALE_EPOCH, "the lease has expired: register again");
  });
}

void AgentGateway::TakeOver() {
  images_.Clear();
  first_job_ = loop_->Read([](const ClusterState& state, uint64_t) { return state.next_job_id(); });
}

SessionId AgentGateway::OnConnect(std::shared_ptr<AgentLink> link) {
  absl::Status closed;
  SessionId id = 0;
  {
    absl::MutexLock lock(&mutex_);
    id = next_session_++;
    sessions_[id].link = link;
    closed = closed_;
  }
  if (!closed.ok()) link->Close(std::move(closed));
  return id;
}

void AgentGateway::OnMessage(SessionId id, v1::AgentMessage message) {
  const Session session = Look(id);
  if (session.link == nullptr) return;
  if (message.message_case() == v1::AgentMessage::kHello) {
    return OnHello(id, session.link, std::move(*message.mutable_hello()));
  }
  if (session.epoch == 0 || message.epoch() != session.epoch) {
    ++counters_.stale_epochs;
    return Refuse(session.link, v1::Refused::STALE_EPOCH,
                  absl::StrCat("epoch ", message.epoch(), " is not that of this registration, ",
                               session.epoch));
  }
  if (!session.missing.empty()) Confirm(id);
  switch (message.message_case()) {
    case v1::AgentMessage::kHeartbeat:
      return OnHeartbeat(session, message.heartbeat());
    case v1::AgentMessage::kReport:
      return OnReport(session, std::move(*message.mutable_report()));
    case v1::AgentMessage::kLog:
      if (log_sink_ != nullptr) log_sink_->OnLogChunk(id, std::move(*message.mutable_log()));
      return;
    case v1::AgentMessage::kExec:
      if (exec_sink_ != nullptr) exec_sink_->OnExecOutput(id, std::move(*message.mutable_exec()));
      return;
    case v1::AgentMessage::kConditions:
      return OnConditions(id, session, std::move(*message.mutable_conditions()));
    case v1::AgentMessage::kProgress:
      return OnProgress(session, std::move(*message.mutable_progress()));
    case v1::AgentMessage::kImages:
      return OnImages(id, session, std::move(*message.mutable_images()));
    case v1::AgentMessage::kKeptFiles:
      return OnKeptFiles(id, session, std::move(*message.mutable_kept_files()));
    default:
      ++counters_.invalid_messages;
      return Refuse(session.link, v1::Refused::INVALID, "unknown kind of message");
  }
}

void AgentGateway::OnClosed(SessionId id) {
  {
    absl::MutexLock lock(&mutex_);
    auto found = sessions_.find(id);
    if (found == sessions_.end()) return;
    brake_.Forget(found->second.node, found->second.epoch);
    node_images_.Forget(found->second.node, found->second.epoch);
    auto current = by_node_.find(found->second.node);
    if (current != by_node_.end() && current->second == id) by_node_.erase(current);
    sessions_.erase(found);
  }
  if (log_sink_ != nullptr) log_sink_->OnSessionGone(id);
  if (exec_sink_ != nullptr) exec_sink_->OnExecSessionGone(id);
}

AgentGateway::Session AgentGateway::Look(SessionId id) const {
  absl::MutexLock lock(&mutex_);
  auto found = sessions_.find(id);
  return found == sessions_.end() ? Session{} : found->second;
}

void AgentGateway::OnHello(SessionId id, const Link& link, v1::Hello hello) {
  bool repeated = false;
  {
    absl::MutexLock lock(&mutex_);
    Session& session = sessions_.at(id);
    repeated = std::exchange(session.said_hello, true);
    session.takes_prefetch = hello.takes_prefetch();
  }
  if (repeated) {
    ++counters_.invalid_messages;
    return Refuse(link, v1::Refused::INVALID, "a second Hello on one stream");
  }
  const uint32_t format = options_.store_format();
  if (absl::Status status = ValidateHello(hello, format); !status.ok()) {
    ++counters_.hellos_refused;
    LogWarn("a node registration was refused", {{"node", hello.node()}, {"error", status}});
    return Refuse(link, v1::Refused::INVALID, status.message(), options_.name_in_use_retry);
  }
  for (v1::TaskReport& report : *hello.mutable_tasks()) FitFormat(format, &report);
  const size_t weight = 1 + static_cast<size_t>(hello.tasks_size());
  const absl::Status posted = loop_->Post(
      [this, id, link, hello = std::move(hello)](Turn& turn) { Register(turn, id, link, hello); },
      CommandClass::kEssential, weight);
  if (!posted.ok()) Refuse(link, v1::Refused::BUSY, posted.message(), options_.busy_retry);
}

void AgentGateway::Register(Turn& turn, SessionId id, const Link& link, const v1::Hello& hello) {
  const Expectation expected{.first_unknown = FirstUnknown(turn.state(), hello.agent_id()),
                             .restored = leases_->Hold().left > absl::ZeroDuration(),
                             .images = &images_};
  absl::StatusOr<Registration> registration = RegisterNode(turn, hello, options_.store, expected);
  if (!registration.ok()) {
    ++counters_.hellos_refused;
    LogWarn("a node registration was refused",
            {{"node", hello.node()}, {"error", registration.status()}});
    const bool in_use = absl::IsAlreadyExists(registration.status());
    turn.OnDurable([this, link, in_use, why = std::string(registration.status().message())] {
      Refuse(link, in_use ? v1::Refused::NAME_IN_USE : v1::Refused::INVALID, why,
             options_.name_in_use_retry);
    });
    return;
  }
  known_agents_.insert(hello.agent_id());
  leases_->RecordGrant(turn);
  LogInfo("node registered", {{"node", hello.node()},
                              {"epoch", registration->epoch},
                              {"tasks", hello.tasks_size()},
                              {"forget", registration->forget.size()},
                              {"changed", registration->changed}});
  turn.OnDurable([this, id, link, registration = *std::move(registration)]() mutable {
    Activate(id, link, std::move(registration));
  });
}

// An agent that has not met this server yet knows none of its jobs. Once jobs have taken the uids
// that an older copy assigns again, the state alone would not show that.
JobId AgentGateway::FirstUnknown(const ClusterState& state, const std::string& agent_id) const {
  return known_agents_.contains(agent_id) ? state.next_job_id() : first_job_.load();
}

// The session becomes the node's. It may have ended in the meantime: then only the lease counts,
// and expires unless the agent comes again.
void AgentGateway::Activate(SessionId id, const Link& link, Registration registration) {
  ++counters_.registrations;
  leases_->Registered(registration.node, registration.epoch);
  Link superseded;
  {
    absl::MutexLock lock(&mutex_);
    auto session = sessions_.find(id);
    if (session == sessions_.end()) return;
    session->second.node = registration.node;
    session->second.epoch = registration.epoch;
    session->second.missing = std::move(registration.missing);
    SessionId& current = by_node_[registration.node];
    auto before = sessions_.find(std::exchange(current, id));
    if (before != sessions_.end() && before->first != id) superseded = before->second.link;
  }
  if (superseded != nullptr) {
    Refuse(superseded, v1::Refused::SUPERSEDED, "the agent connected again");
  }
  SendWelcome(link, registration);
  for (uint64_t report_id : registration.acks) SendAck(link, report_id);
  dispatcher_->Send(std::move(registration.orders));
}

void AgentGateway::SendWelcome(const Link& link, const Registration& registration) {
  v1::ServerMessage message;
  v1::Welcome& welcome = *message.mutable_welcome();
  welcome.set_epoch(registration.epoch);
  welcome.set_node_id(registration.node.value);
  welcome.set_takes_progress(progress_book_ != nullptr);
  welcome.set_takes_kept_files(true);
  welcome.set_takes_images(true);
  welcome.set_cluster_id(options_.store.cluster_id);
  welcome.set_incarnation(options_.store.incarnation);
  if (task_keys_ != nullptr) {
    welcome.set_task_key(task_keys_->Of(registration.node, registration.name, registration.epoch));
  }
  ToProto(leases_->lease(), welcome.mutable_lease());
  ToProto(options_.heartbeat_interval, welcome.mutable_heartbeat_interval());
  welcome.mutable_forget()->Assign(registration.forget.begin(), registration.forget.end());
  Deliver(link, std::move(message));
}

void AgentGateway::Confirm(SessionId id) {
  Session session;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = sessions_.find(id);
    if (found == sessions_.end()) return;
    session = found->second;
    found->second.missing.clear();
  }
  const size_t weight = session.missing.size();
  const absl::Status posted = loop_->Post(
      [session](Turn& turn) { ProcessMissing(turn, session.node, session.epoch, session.missing); },
      CommandClass::kEssential, weight);
  if (!posted.ok()) Refuse(session.link, v1::Refused::BUSY, posted.message(), options_.busy_retry);
}

void AgentGateway::OnHeartbeat(const Session& session, const v1::Heartbeat& heartbeat) {
  ++counters_.heartbeats;
  const Beat beat{heartbeat.sequence(), heartbeat.acked(),
                  heartbeat.has_lease() ? DurationFrom(heartbeat.lease()) : absl::ZeroDuration()};
  const std::optional<absl::Duration> longer =
      leases_->Heartbeat(session.node, session.epoch, beat);
  if (!longer) {
    ++counters_.stale_epochs;
    return Refuse(session.link, v1::Refused::STALE_EPOCH, "the lease has expired: register again");
  }
  // An ack extends the agent's lease: only the server that still leads may send it.
  loop_->WhenLeading([this, link = session.link, sequence = heartbeat.sequence(),
                      longer = *longer](const absl::Status& leads) {
    if (leads.ok()) SendHeartbeatAck(link, sequence, longer);
  });
  RetryConditions(session.node);
  RetryImages();
  RecordImages(session.node);
  CheckFabric();
}

// Heartbeats are its clock: without agents there is nothing to judge.
void AgentGateway::CheckFabric() {
  if (!fabric_.Due(loop_->clock().Steady())) return;
  const absl::Status posted =
      loop_->Post([this](Turn& turn) { fabric_.Check(turn); }, CommandClass::kEssential);
  if (!posted.ok()) LogWarn("the fabric is not checked now", {{"error", posted}});
}

// If the loop is full, the next heartbeat tries.
void AgentGateway::RetryConditions(NodeId node) {
  if (!brake_.Holds(node)) return;
  const absl::Status posted =
      loop_->Post([this, node](Turn& turn) { brake_.Retry(turn, node); }, CommandClass::kEssential);
  if (!posted.ok()) LogWarn("held conditions are not tried now", {{"error", posted}});
}

void AgentGateway::SendHeartbeatAck(const Link& link, uint64_t sequence, absl::Duration longer) {
  v1::ServerMessage message;
  message.mutable_heartbeat_ack()->set_sequence(sequence);
  if (longer > absl::ZeroDuration()) {
    ToProto(longer, message.mutable_heartbeat_ack()->mutable_lease());
  }
  Deliver(link, std::move(message));
}

void AgentGateway::GrantLongerLeases() {
  std::vector<Session> sessions;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [node, id] : by_node_) sessions.push_back(sessions_.at(id));
  }
  // The map's order differs between processes; the order of messages must not.
  std::sort(sessions.begin(), sessions.end(),
            [](const Session& a, const Session& b) { return a.node < b.node; });
  for (const Session& session : sessions) {
    const std::optional<LeaseKeeper::Grant> grant = leases_->GrantNow(session.node, session.epoch);
    if (!grant) continue;
    loop_->WhenLeading([this, link = session.link, grant = *grant](const absl::Status& leads) {
      if (leads.ok()) SendHeartbeatAck(link, grant.sequence, grant.lease);
    });
  }
}

void AgentGateway::OnReport(const Session& session, v1::TaskReport report) {
  ++counters_.reports;
  if (report.key().incarnation() != options_.store.incarnation) {
    ++counters_.foreign_reports;
    return SendAck(session.link, report.report_id());  // the agent may drop it
  }
  FitFormat(options_.store_format(), &report);
  const absl::Status posted = loop_->Post([this, session, report = std::move(report)](
                                              Turn& turn) { ApplyReport(turn, session, report); },
                                          CommandClass::kEssential);
  if (!posted.ok()) Refuse(session.link, v1::Refused::BUSY, posted.message(), options_.busy_retry);
}

// Every report is acknowledged once everything that it was judged by is durable: only then may the
// agent drop it.
void AgentGateway::ApplyReport(Turn& turn, const Session& session, const v1::TaskReport& message) {
  const Node* node = turn.state().nodes().Find(session.node);
  if (node == nullptr || node->status.epoch != session.epoch ||
      node->status.state != NodeState::kReady) {
    ++counters_.stale_epochs;
    return Refuse(session.link, v1::Refused::STALE_EPOCH, "register again");
  }
  absl::StatusOr<TaskReported> report = ToTaskReported(message);
  absl::Status verdict = report.status();
  if (report.ok()) {
    switch (JudgeReport(turn.state(), session.node, *report, message.freeze_request())) {
      case ReportVerdict::kNews:
        if (CountsImage(turn, *report, message)) verdict = turn.Emit(*report);
        break;
      case ReportVerdict::kKnown:
      case ReportVerdict::kSuperseded:
        ++counters_.duplicate_reports;
        break;
      case ReportVerdict::kUnknown:
        verdict = absl::NotFoundError("the node never had this task and attempt");
        break;
    }
  }
  if (!verdict.ok()) {
    ++counters_.unknown_reports;
    LogWarn("a task report was ignored", {{"node", node->spec.name},
                                          {"job", message.key().job_uid()},
                                          {"task", message.key().task()},
                                          {"attempt", message.key().attempt()},
                                          {"error", verdict}});
  }
  turn.OnDurable([this, link = session.link, id = message.report_id()] { SendAck(link, id); });
}

// Problems that an agent reports steer its node as an operator would, in the agent's name
// (conditions.h), as far as the brake allows.
void AgentGateway::OnConditions(SessionId id, const Session& session,
                                v1::NodeConditions conditions) {
  if (absl::Status status = ValidateConditions(conditions); !status.ok()) {
    ++counters_.invalid_messages;
    return Refuse(session.link, v1::Refused::INVALID, status.message());
  }
  {
    absl::MutexLock lock(&mutex_);
    const auto found = sessions_.find(id);
    if (found == sessions_.end()) return;
    found->second.conditions.clear();
    for (const v1::NodeCondition& condition : conditions.conditions())
      found->second.conditions.push_back(condition.name());
  }
  const absl::Status posted = loop_->Post(
      [this, node = session.node, epoch = session.epoch,
       conditions = std::move(conditions)](Turn& turn) {
        brake_.Note(turn, node, epoch, conditions);
        fabric_.Note(turn, node, conditions);
      },
      CommandClass::kEssential);
  if (!posted.ok()) Refuse(session.link, v1::Refused::BUSY, posted.message(), options_.busy_retry);
}

// What tasks of another incarnation told is of no use: nothing of them runs for this server.
void AgentGateway::OnProgress(const Session& session, v1::Progress progress) {
  if (progress_book_ == nullptr) return;
  if (absl::Status status = ValidateProgress(progress); !status.ok()) {
    ++counters_.invalid_messages;
    return Refuse(session.link, v1::Refused::INVALID, status.message());
  }
  auto& tasks = *progress.mutable_tasks();
  tasks.erase(std::remove_if(tasks.begin(), tasks.end(),
                             [&](const v1::TaskProgress& one) {
                               return one.key().incarnation() != options_.store.incarnation;
                             }),
              tasks.end());
  const size_t weight = 1 + static_cast<size_t>(tasks.size());
  const absl::Status posted = loop_->Post(
      [this, node = session.node, epoch = session.epoch,
       progress = std::move(progress)](Turn& turn) {
        const Node* known = turn.state().nodes().Find(node);
        if (known == nullptr || known->status.epoch != epoch) return;
        progress_book_->Note(turn, node, progress);
      },
      CommandClass::kEssential, weight);
  if (!posted.ok()) Refuse(session.link, v1::Refused::BUSY, posted.message(), options_.busy_retry);
}

// Only what is durable may remove files. A Prepare that follows is sent after this reply.
void AgentGateway::OnKeptFiles(SessionId id, const Session& session, v1::KeptFiles kept) {
  if (kept.job_uids_size() > kMaxKeptJobs) {
    ++counters_.invalid_messages;
    return Refuse(session.link, v1::Refused::INVALID,
                  absl::StrCat("more than ", kMaxKeptJobs, " jobs with kept files"));
  }
  const size_t weight = 1 + static_cast<size_t>(kept.job_uids_size());
  const absl::Status posted = loop_->Post(
      [this, id, node = session.node, kept = std::move(kept)](Turn& turn) {
        v1::ServerMessage reply;
        *reply.mutable_drop_files() = FilesToDrop(turn.state(), node, kept, turn.now());
        if (reply.drop_files().job_uids().empty()) return;
        turn.OnDurable([this, id, reply = std::move(reply)]() mutable {
          SendToSession(id, std::move(reply));
        });
      },
      CommandClass::kEssential, weight);
  if (!posted.ok()) Refuse(session.link, v1::Refused::BUSY, posted.message(), options_.busy_retry);
}

std::map<std::string, int64_t> AgentGateway::Conditions() const {
  std::map<std::string, int64_t> counts;
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, session] : sessions_) {
    for (const std::string& name : session.conditions) ++counts[name];
  }
  return counts;
}

void AgentGateway::SendAck(const Link& link, uint64_t report_id) {
  v1::ServerMessage message;
  message.mutable_report_ack()->set_report_id(report_id);
  Deliver(link, std::move(message));
}

void AgentGateway::Refuse(const Link& link, v1::Refused::Code code, absl::string_view why,
                          absl::Duration retry_after) {
  v1::ServerMessage message;
  v1::Refused& refused = *message.mutable_refused();
  refused.set_code(code);
  refused.set_message(std::string(why));
  ToProto(retry_after, refused.mutable_retry_after());
  Deliver(link, std::move(message));
  link->Close(absl::OkStatus());
}

bool AgentGateway::SendTo(NodeId node, uint64_t epoch, v1::ServerMessage message) {
  Link link;
  {
    absl::MutexLock lock(&mutex_);
    auto current = by_node_.find(node);
    if (current != by_node_.end()) {
      const Session& session = sessions_.at(current->second);
      if (session.epoch == epoch) link = session.link;
    }
  }
  ++(link != nullptr ? counters_.messages_sent : counters_.messages_dropped);
  if (link == nullptr) return false;
  SetIncarnation(&message);
  Deliver(link, std::move(message));
  return true;
}

void AgentGateway::Deliver(const Link& link, v1::ServerMessage message) const {
  if (options_.term != nullptr) message.set_term(options_.term());
  link->Send(std::move(message));
}

void AgentGateway::SetIncarnation(v1::ServerMessage* message) const {
  const uint64_t incarnation = options_.store.incarnation;
  switch (message->message_case()) {
    case v1::ServerMessage::kPrepare:
      return message->mutable_prepare()->mutable_key()->set_incarnation(incarnation);
    case v1::ServerMessage::kStart:
      return message->mutable_start()->mutable_key()->set_incarnation(incarnation);
    case v1::ServerMessage::kKill:
      return message->mutable_kill()->mutable_key()->set_incarnation(incarnation);
    case v1::ServerMessage::kSignalTask:
      return message->mutable_signal_task()->mutable_key()->set_incarnation(incarnation);
    case v1::ServerMessage::kFreezeTask:
      return message->mutable_freeze_task()->mutable_key()->set_incarnation(incarnation);
    case v1::ServerMessage::kReadLog:
      return message->mutable_read_log()->mutable_key()->set_incarnation(incarnation);
    case v1::ServerMessage::kOpenExec:
      return message->mutable_open_exec()->mutable_key()->set_incarnation(incarnation);
    default:
      return;
  }
}

SessionId AgentGateway::CurrentSession(NodeId node) const {
  absl::MutexLock lock(&mutex_);
  auto found = by_node_.find(node);
  return found == by_node_.end() ? 0 : found->second;
}

bool AgentGateway::SendToSession(SessionId id, v1::ServerMessage message) {
  const Session session = Look(id);
  if (session.link == nullptr) return false;
  SetIncarnation(&message);
  Deliver(session.link, std::move(message));
  return true;
}

void AgentGateway::Disconnect(NodeId node, uint64_t epoch, v1::Refused::Code code,
                              const std::string& why) {
  const Session session = Look(CurrentSession(node));
  if (session.link != nullptr && session.epoch == epoch) Refuse(session.link, code, why);
}

// If it cannot be posted, the prepare timeout brings the job here again.
void AgentGateway::CancelJob(JobId job, absl::string_view why) {
  const absl::Status posted = loop_->Post(
      [job, why = std::string(why)](Turn& turn) {
        const absl::Status status = turn.Emit(JobCancelled{job, why});
        if (!status.ok())
          LogWarn("a job cannot be cancelled", {{"job", job.value}, {"error", status}});
      },
      CommandClass::kEssential);
  if (!posted.ok()) LogWarn("a job cannot be cancelled", {{"job", job.value}, {"error", posted}});
}

void AgentGateway::DisconnectAll(absl::Status why) {
  std::vector<Link> links;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = why;
    for (const auto& [id, session] : sessions_) links.push_back(session.link);
  }
  for (const Link& link : links) link->Close(why);
}

size_t AgentGateway::sessions() const {
  absl::MutexLock lock(&mutex_);
  return sessions_.size();
}

}  // namespace berth
