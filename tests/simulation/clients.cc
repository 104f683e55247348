#include "tests/simulation/clients.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/commands/node_steering.h"
#include "server/reads/read_view.h"
#include "storage/store.h"
#include "tests/simulation/agent.h"
#include "tests/simulation/collectives.h"
#include "tests/simulation/processes.h"

namespace berth::simulation {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(10);
constexpr absl::Duration kPollPeriod = absl::Minutes(2);
constexpr RetryPolicy kRetry = {.first_backoff = absl::Milliseconds(200),
                                .max_backoff = absl::Seconds(10)};

void Set(absl::Duration value, google::protobuf::Duration* out) {
  out->set_seconds(absl::ToInt64Seconds(value));
}

void AddVariable(const char* name, int64_t value, v1::TaskGroup* group) {
  v1::EnvVar* variable = group->add_env();
  variable->set_name(name);
  variable->set_value(absl::StrCat(value));
}

bool AnyPolicies(const v1::JobSpec& spec) {
  return !spec.policies().empty() ||
         std::any_of(spec.groups().begin(), spec.groups().end(),
                     [](const v1::TaskGroup& group) { return !group.policies().empty(); });
}

void AddPolicy(v1::LifecyclePolicy::Event event, v1::LifecyclePolicy::Action action,
               google::protobuf::RepeatedPtrField<v1::LifecyclePolicy>* policies) {
  v1::LifecyclePolicy* policy = policies->Add();
  policy->set_event(event);
  policy->set_action(action);
}

// More than one task, and none runs without the others, unless its group waits for another.
bool IsGang(const v1::JobSpec& spec) {
  int tasks = 0;
  for (const v1::TaskGroup& group : spec.groups()) {
    if (group.min_available() > 0 && group.min_available() < group.replicas()) return false;
    tasks += group.replicas();
  }
  return tasks > 1;
}

}  // namespace

// One call, until it is answered.
struct Clients::Call {
  // Runs at the server: executes the call and answers.
  std::function<void(std::function<void(absl::Status)>)> perform;
  std::function<void(absl::Status)> done;
  std::string what;
  Backoff backoff;
  uint64_t tries = 0;
  bool over = false;
};

namespace {

// One task with whole GPUs.
bool MayLendGpus(const v1::JobSpec& spec) {
  if (spec.groups_size() != 1) return false;
  const v1::TaskGroup& group = spec.groups(0);
  const auto& devices = group.resources().devices();
  return group.replicas() == 1 && group.spares() == 0 && devices.size() == 1 &&
         devices[0].count() > 0;
}

}  // namespace

Clients::Clients(Workload workload, Scheduler* scheduler, Trace* trace, Network* network,
                 Server* server, Safety* safety, uint64_t seed,
                 std::function<void(const std::string&)> fail)
    : workload_(std::move(workload)),
      scheduler_(scheduler),
      trace_(trace),
      network_(network),
      server_(server),
      safety_(safety),
      fail_(std::move(fail)),
      dice_(seed, 0x636c69),
      watch_dice_(seed, 0x7761746368),
      image_dice_(seed, 0x696d616765),
      pause_dice_(seed, 0x7061757365) {}

void Clients::Begin() {
  scheduler_->After(dice_.Around(workload_.between), actor_, [this] { SubmitNext(); });
}

// ---- Workload

// Requests whole devices, or a part of one by share or by memory.
void Clients::SetDevices(v1::DeviceRequest* gpus) {
  gpus->set_kind("gpu");
  const bool shares = workload_.shared_memory_bytes > 0 && dice_.Chance(0.5);
  if (!shares) return gpus->set_count(static_cast<int>(dice_.Between(1, workload_.gpus)));
  if (dice_.Chance(0.5)) {
    gpus->set_memory_bytes(workload_.shared_memory_bytes * dice_.Between(1, 9) / 10);
  } else {
    gpus->set_share(0.1 * static_cast<double>(dice_.Between(1, 9)));
    gpus->set_oversubscribe(dice_.Chance(0.5));
  }
}

void Clients::SetGroup(v1::TaskGroup* group, int most_tasks) {
  group->set_replicas(static_cast<int>(dice_.Between(1, most_tasks)));
  v1::ResourceRequest* resources = group->mutable_resources();
  resources->set_cpu_millis(dice_.Between(500, workload_.cpu_millis / 2));
  resources->set_memory_bytes(int64_t{1} << 28);
  if (workload_.gpus > 0 && dice_.Chance(0.5)) {
    SetDevices(resources->add_devices());
  }
  group->add_command("train");
  AddVariable(kRunTimeVariable, absl::ToInt64Milliseconds(dice_.Around(absl::Minutes(2))), group);
  AddVariable(kFailVariable, dice_.Chance(0.2) ? 30 : 0, group);
  if (dice_.Chance(0.03)) group->set_working_dir(kMissingDirectory);
}

v1::Job Clients::MakeJob() {
  v1::Job job;
  job.set_name(absl::StrCat("j", submitted_++));
  v1::JobSpec& spec = *job.mutable_spec();
  spec.set_queue(workload_.queues[dice_.Below(workload_.queues.size())]);
  spec.set_priority(static_cast<int>(dice_.Between(0, 3)));
  spec.set_preemptible(workload_.borrows || dice_.Chance(0.3));
  spec.set_max_retries(static_cast<int>(dice_.Between(0, 3)));
  Set(absl::Seconds(dice_.Between(0, 20)), spec.mutable_kill_grace());
  if (dice_.Chance(0.2)) Set(absl::Minutes(dice_.Between(1, 10)), spec.mutable_walltime());
  const double loss = dice_.Unit();
  if (loss < 0.1) spec.set_on_node_loss(v1::REPLACE_NOW);
  const bool near = workload_.rack_nodes > 0 && dice_.Chance(0.2);
  if (near) {
    spec.mutable_topology()->set_mode(v1::TopologyConstraint::HARD);
    spec.mutable_topology()->set_highest_tier(1);
  }
  SetGroups(&spec, near ? workload_.rack_nodes : workload_.nodes);
  spec.set_suspended(dice_.Chance(0.05));
  if (loss > 0.9) spec.set_on_node_loss(v1::KEEP);
  if (IsGang(spec)) {
    SetGang(&spec);
  } else if (dice_.Chance(0.2)) {
    AddPolicy(
        v1::LifecyclePolicy::TASK_FAILED,
        dice_.Chance(0.5) ? v1::LifecyclePolicy::RESTART_TASK : v1::LifecyclePolicy::RESTART_JOB,
        spec.mutable_policies());
  }
  if (watch_dice_.Chance(0.3)) SetWatchdog(&spec);
  if (spec.preemptible() && pause_dice_.Chance(0.5)) spec.set_preempt_mode(v1::PAUSE);
  if (!AnyPolicies(spec) && spec.max_retries() > 0 && watch_dice_.Chance(0.3)) {
    v1::Rung* first = spec.add_escalation();
    first->set_action(v1::LifecyclePolicy::RESTART_TASK);
    Set(watch_dice_.Between(absl::Seconds(10), absl::Minutes(10)), first->mutable_for_());
    spec.add_escalation()->set_action(v1::LifecyclePolicy::RESTART_JOB);
  }
  if (watch_dice_.Chance(0.2)) {
    v1::TaskGroup& group = *spec.mutable_groups(0);
    group.set_spares(static_cast<int>(watch_dice_.Between(1, std::min(2, group.replicas()))));
  }
  if (image_dice_.Chance(0.3)) {
    spec.mutable_groups(0)->set_image(SomeImages::Name(image_dice_.Below(SomeImages::kImages)));
    Set(absl::Minutes(1), spec.mutable_prepare_timeout());  // as without an image
  }
  if (MayLendGpus(spec)) spec.mutable_pause()->set_devices(v1::PausePolicy::CHECKPOINT);
  return job;
}

// Its tasks report steps, at least three within the timeout; some hang.
void Clients::SetWatchdog(v1::JobSpec* spec) {
  const absl::Duration timeout = watch_dice_.Between(absl::Minutes(1), absl::Minutes(10));
  Set(timeout, spec->mutable_watchdog()->mutable_timeout());
  Set(timeout, spec->mutable_watchdog()->mutable_start());
  const absl::Duration step = watch_dice_.Between(absl::Seconds(2), timeout / 3);
  const int64_t percent = watch_dice_.Chance(0.3) ? 30 : 0;
  for (v1::TaskGroup& group : *spec->mutable_groups()) {
    AddVariable(kStepVariable, absl::ToInt64Milliseconds(step), &group);
    AddVariable(kHangVariable, percent, &group);
  }
}

// One group, or two: the first may be a single master, and the second may wait for it.
void Clients::SetGroups(v1::JobSpec* spec, int nodes) {
  const int groups = dice_.Chance(0.2) ? 2 : 1;
  for (int i = 0; i < groups; ++i) {
    v1::TaskGroup* group = spec->add_groups();
    group->set_name(absl::StrCat("g", i));
    SetGroup(group, dice_.Chance(0.5) ? 1 : std::max(1, nodes / groups));
    if (group->replicas() > 2 && dice_.Chance(0.3)) {
      group->set_min_available(static_cast<int>(dice_.Between(1, group->replicas())));
    }
  }
  if (groups == 2 && dice_.Chance(0.4)) {
    v1::GroupDependency* after = spec->mutable_groups(1)->add_depends_on();
    after->set_group("g0");
    after->set_condition(dice_.Chance(0.5) ? v1::GroupDependency::RUNNING
                                           : v1::GroupDependency::COMPLETED);
  }
}

// Half of the gangs are collectives. Many ask for restarts of single members, as manifests do that
// were written for other schedulers, for all groups or only for the last (the workers).
void Clients::SetGang(v1::JobSpec* spec) {
  if (dice_.Chance(0.25)) {
    const bool meet = dice_.Chance(0.5);
    for (v1::TaskGroup& group : *spec->mutable_groups()) {
      group.set_membership(meet ? v1::RENDEZVOUS : v1::INDEPENDENT);
    }
  }
  if (dice_.Chance(0.5)) {
    for (v1::TaskGroup& group : *spec->mutable_groups())
      AddVariable(kCollectiveVariable, 1, &group);
  }
  if (dice_.Chance(0.5)) return;
  spec->set_max_retries(static_cast<int>(dice_.Between(0, 10)));
  auto* policies = dice_.Chance(0.5)
                       ? spec->mutable_policies()
                       : spec->mutable_groups(spec->groups_size() - 1)->mutable_policies();
  if (dice_.Chance(0.8)) {
    AddPolicy(
        v1::LifecyclePolicy::TASK_FAILED,
        dice_.Chance(0.8) ? v1::LifecyclePolicy::RESTART_TASK : v1::LifecyclePolicy::RESTART_JOB,
        policies);
  }
  if (dice_.Chance(0.8)) {
    AddPolicy(v1::LifecyclePolicy::NODE_LOST, v1::LifecyclePolicy::RESTART_TASK, policies);
  }
}

void Clients::SubmitNext() {
  if (finishing_ || submitted_ >= workload_.max_jobs) return;
  scheduler_->After(dice_.Around(workload_.between), actor_, [this] { SubmitNext(); });
  if (open_ >= workload_.max_open) return;
  auto request = std::make_shared<v1::SubmitJobsRequest>();
  request->set_request_id(absl::StrCat("request-", submitted_));
  *request->add_jobs() = MakeJob();
  if (dice_.Chance(0.15)) {
    const std::string first = request->jobs(0).name();
    v1::Job& second = *request->add_jobs();
    second = MakeJob();
    v1::JobDependency* after = second.mutable_spec()->add_dependencies();
    after->set_job(first);
    after->set_condition(dice_.Chance(0.5) ? v1::JobDependency::AFTER_OK
                                           : v1::JobDependency::AFTER_ANY);
  }
  open_ += request->jobs_size();
  for (const v1::Job& job : request->jobs()) {
    safety_->OnSubmitting(job);
    trace_->Say(scheduler_->now(), "asks", job.ShortDebugString());
  }
  auto response = std::make_shared<v1::SubmitJobsResponse>();
  auto incarnation = std::make_shared<uint64_t>(0);  // of the server that answers
  Send(std::make_shared<Call>(
      Call{.perform =
               [this, request, response, incarnation](std::function<void(absl::Status)> answer) {
                 server_->Submit(request, [response, incarnation, now = server_->incarnation(),
                                           answer = std::move(answer)](
                                              absl::Status status, v1::SubmitJobsResponse given) {
                   *response = std::move(given);
                   *incarnation = now;
                   answer(status);
                 });
               },
           .done =
               [this, request, response, incarnation](const absl::Status& status) {
                 if (!status.ok())
                   return fail_(absl::StrCat("kept: a submit was refused: ", status.ToString()));
                 for (int i = 0; i < request->jobs_size(); ++i)
                   OnSubmitted(request->jobs(i), response->jobs(i).uid(), *incarnation);
               },
           .what = request->jobs(0).name(),
           .backoff = Backoff(kRetry, &dice_.random())}));
}

void Clients::OnSubmitted(const v1::Job& job, uint64_t uid, uint64_t incarnation) {
  safety_->OnSubmitted(job.name(), uid, incarnation);
  trace_->Say(scheduler_->now(), "submitted", absl::StrCat(job.name(), " uid ", uid));
  if (dice_.Chance(0.1)) CancelLater(job.name());
  if (dice_.Chance(0.05)) SuspendLater(job.name());
  scheduler_->After(dice_.Around(kPollPeriod), actor_, [this, name = job.name()] { Poll(name); });
}

void Clients::CancelLater(const std::string& name) {
  scheduler_->After(dice_.Around(absl::Minutes(1)), actor_, [this, name] {
    const bool force = dice_.Chance(0.3);
    safety_->OnCancelling(name, force);
    auto incarnation = std::make_shared<uint64_t>(0);
    ChangeJob(
        name,
        [this, incarnation, force](const Job& job) {
          *incarnation = server_->incarnation();
          v1::CancelJobRequest request;
          request.set_force(force);
          request.set_reason("simulated");
          return CancelOf(job, request, "");
        },
        [this, name, incarnation](const absl::Status& status) {
          if (status.ok()) safety_->OnCancelled(name, *incarnation);
        });
  });
}

// A job that has ended or is about to end is left alone. A client that finds a job suspended
// resumes it some time later: a late, repeated order may have suspended it again.
void Clients::SuspendLater(const std::string& name) {
  scheduler_->After(dice_.Around(absl::Minutes(1)), actor_, [this, name] {
    const bool freezes = dice_.Chance(0.5);
    ChangeState(
        name,
        [freezes](const ClusterState& state, const Job& job) {
          return freezes ? FreezeOf(state, job, kStoreFormat) : SuspensionOf(job, true);
        },
        [](const absl::Status&) {});
  });
}

void Clients::Resume(const std::string& name) {
  ChangeState(name, ResumeOf, [](const absl::Status&) {});
}

void Clients::ChangeJob(const std::string& name, std::function<MaybeEvent(const Job&)> change,
                        std::function<void(const absl::Status&)> done) {
  ChangeState(
      name,
      [change = std::move(change)](const ClusterState&, const Job& job) { return change(job); },
      std::move(done));
}

void Clients::ChangeState(const std::string& name,
                          std::function<MaybeEvent(const ClusterState&, const Job&)> change,
                          std::function<void(const absl::Status&)> done) {
  Send(std::make_shared<Call>(
      Call{.perform =
               [this, name, change = std::move(change)](std::function<void(absl::Status)> answer) {
                 server_->Change(
                     CommandClass::kEssential,
                     [name, change](Turn& turn) -> absl::Status {
                       const Job* job = turn.state().FindJob(name);
                       if (job == nullptr) return absl::NotFoundError(name);
                       MaybeEvent event = change(turn.state(), *job);
                       if (!event.ok()) return event.status();
                       return event->has_value() ? turn.Emit(**std::move(event)) : absl::OkStatus();
                     },
                     std::move(answer));
               },
           .done = std::move(done),
           .what = name,
           .backoff = Backoff(kRetry, &dice_.random())}));
}

// Polls until the job has ended.
void Clients::Poll(const std::string& name) {
  struct Seen {
    bool found = false, ended = false, succeeded = false, suspended = false;
    std::string message = {};
    uint64_t incarnation = 0;
    absl::Duration at = absl::ZeroDuration();
  };
  auto seen = std::make_shared<Seen>();
  Send(std::make_shared<Call>(
      Call{.perform =
               [this, name, seen](std::function<void(absl::Status)> answer) {
                 if (!server_->up()) return answer(absl::UnavailableError("connection refused"));
                 ReadView view(server_->loop());
                 const Seen now = view.Step([&](const ClusterState& state) {
                   const Job* job = state.FindJob(name);
                   if (job == nullptr)
                     return Seen{.incarnation = server_->incarnation(), .at = scheduler_->now()};
                   return Seen{.found = true,
                               .ended = Ended(job->status.state),
                               .succeeded = job->status.state == JobState::kSucceeded,
                               .suspended = job->status.suspended,
                               .message = job->status.message,
                               .incarnation = server_->incarnation(),
                               .at = scheduler_->now()};
                 });
                 view.Answer([seen, now, answer = std::move(answer)](absl::Status durable) {
                   *seen = now;
                   answer(durable);
                 });
               },
           .done =
               [this, name, seen](const absl::Status& status) {
                 if (!status.ok()) return fail_(absl::StrCat("a read failed: ", status.ToString()));
                 safety_->OnRead(name, {.incarnation = seen->incarnation,
                                        .at = seen->at,
                                        .found = seen->found,
                                        .ended = seen->ended,
                                        .succeeded = seen->succeeded});
                 if (!seen->found || seen->ended) {
                   --open_;
                   trace_->Say(scheduler_->now(), seen->found ? "ended" : "gone",
                               absl::StrCat(name, " ", seen->message));
                   return;
                 }
                 if (seen->suspended && dice_.Chance(0.3)) Resume(name);
                 scheduler_->After(dice_.Around(kPollPeriod), actor_, [this, name] { Poll(name); });
               },
           .what = name,
           .backoff = Backoff(kRetry, &dice_.random())}));
}

void Clients::LookAgain() {
  auto names = std::make_shared<std::vector<std::string>>();
  Send(std::make_shared<Call>(Call{.perform =
                                       [this, names](std::function<void(absl::Status)> answer) {
                                         if (!server_->up())
                                           return answer(
                                               absl::UnavailableError("connection refused"));
                                         ReadView view(server_->loop());
                                         *names = view.Step([](const ClusterState& state) {
                                           std::vector<std::string> open;
                                           state.jobs().ForEach([&open](JobId, const Job& job) {
                                             if (!Ended(job.status.state)) open.push_back(job.name);
                                           });
                                           return open;
                                         });
                                         view.Answer(std::move(answer));
                                       },
                                   .done =
                                       [this, names](const absl::Status&) {
                                         for (const std::string& name : *names) {
                                           ++open_;
                                           Poll(name);
                                         }
                                       },
                                   .what = "jobs",
                                   .backoff = Backoff(kRetry, &dice_.random())}));
}

void Clients::Steer(const std::string& node, bool cordoned) {
  Operate(node, [cordoned](Turn& turn, const Node& known) {
    return turn.Emit(NodeSteered{known.id, cordoned, false, "simulated"});
  });
}

void Clients::Drain(const v1::DrainNodeRequest& request) {
  Operate(request.name(), [request](Turn& turn, const Node& known) -> absl::Status {
    auto event = DrainOf(known, request, turn.now());
    return event.ok() ? turn.Emit(*std::move(event)) : event.status();
  });
}

void Clients::Operate(const std::string& node,
                      std::function<absl::Status(Turn&, const Node&)> change) {
  Send(std::make_shared<Call>(
      Call{.perform =
               [this, node, change](std::function<void(absl::Status)> answer) {
                 server_->Change(
                     CommandClass::kEssential,
                     [node, change](Turn& turn) -> absl::Status {
                       const Node* known = turn.state().FindNode(node);
                       return known == nullptr ? absl::OkStatus() : change(turn, *known);
                     },
                     std::move(answer));
               },
           .done = [](const absl::Status&) {},
           .what = node,
           .backoff = Backoff(kRetry, &dice_.random())}));
}

// ---- Calls

void Clients::Carry(std::function<void()> there) {
  const Weather& weather = network_->weather;
  if (dice_.Chance(weather.loss)) return;
  const absl::Duration latency = dice_.Around(weather.latency);
  if (dice_.Chance(weather.replay)) {
    scheduler_->After(latency + dice_.Around(absl::Seconds(20)), server_->actor(), there);
  }
  scheduler_->After(latency, server_->actor(), std::move(there));
}

// A dead process accepts no packets: its actor is dead, and the call times out.
void Clients::Send(const CallPtr& call) {
  if (call->tries++ == 0) ++waiting_;
  const uint64_t attempt = call->tries;
  Carry([this, call, attempt] {
    call->perform([this, call, attempt](absl::Status status) {
      if (dice_.Chance(network_->weather.loss)) return;
      scheduler_->After(dice_.Around(network_->weather.latency), actor_,
                        [this, call, attempt, status] {
                          if (attempt == call->tries) Answered(call, status);
                        });
    });
  });
  scheduler_->After(kTimeout, actor_, [this, call, attempt] {
    if (attempt == call->tries) Answered(call, absl::UnavailableError("no answer"));
  });
}

void Clients::Answered(const CallPtr& call, const absl::Status& status) {
  if (call->over) return;
  trace_->Add(scheduler_->now(), "answer", static_cast<int64_t>(call->tries),
              static_cast<int64_t>(status.code()));
  if (!IsRetryable(status)) {
    call->over = true;
    --waiting_;
    return call->done(status);
  }
  ++call->tries;  // a later answer to this try is ignored
  scheduler_->After(call->backoff.Next(absl::ZeroDuration()), actor_, [this, call] { Send(call); });
}

}  // namespace berth::simulation
