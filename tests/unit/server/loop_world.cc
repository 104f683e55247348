#include "tests/unit/server/loop_world.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <utility>

#include "berth/v1/job.pb.h"
#include "core/model/image_id.h"
#include "server/convert/cold.h"
#include "server/convert/values.h"
#include "server/loop/load.h"

namespace berth::testing {

void HeldCommitter::Commit(Batch batch, absl::AnyInvocable<void() &&> on_durable) {
  ++batches;
  held_.push_back({std::move(batch), std::move(on_durable)});
  if (!hold) Release();
}

void HeldCommitter::Release(size_t most) {
  for (; most > 0 && !held_.empty(); --most) {
    Held next = std::move(held_.front());
    held_.pop_front();
    REQUIRE(store_->Append({&next.batch}).ok());
    std::move(next.on_durable)();
  }
}

std::vector<v1::ServerMessage> FakeLink::Of(v1::ServerMessage::MessageCase kind) const {
  std::vector<v1::ServerMessage> found;
  for (const v1::ServerMessage& message : messages) {
    if (message.message_case() == kind) found.push_back(message);
  }
  return found;
}

World::World(LoopOptions options, LeaseOptions leases_in)
    : loop_options(options), lease_options(leases_in) {
  Start();
  REQUIRE(loop->Post([](Turn& turn) {
                QueueSpec main;
                main.name = "main";
                REQUIRE(turn.Emit(QueueCreated{turn.state().next_queue_id(), main}).ok());
              })
              .ok());
  Run();
}

World::~World() = default;

void World::Start() {
  ClusterState loaded;
  REQUIRE(Load(
              store, loaded, [](StoredRequest) {}, nullptr)
              .ok());
  LeaseOptions keeping = lease_options;
  keeping.granted_before = ReadGrantedLease(store).value();
  keeping.granted_before.restored |= std::exchange(restored, false);
  const bool held = keeping.granted_before.restored;
  loop = std::make_unique<Loop>(LoopDeps{.clock = &clock,
                                         .committer = &committer,
                                         .policies = &policies,
                                         .policy_record = policy_record,
                                         .held_policies = held ? &no_placing : nullptr,
                                         .store_format = [this] { return store_format; }},
                                std::move(loaded), store.LastSequence(), loop_options);
  peek_ = loop->Read([](const ClusterState& state, uint64_t) { return &state; });
  dispatcher = std::make_unique<Dispatcher>(&store, &executor);
  leases = std::make_unique<LeaseKeeper>(loop.get(), &clock, keeping);
  gateway = std::make_unique<AgentGateway>(
      loop.get(), leases.get(), dispatcher.get(),
      AgentGatewayOptions{.store = identity,
                          .term = [this] { return term; },
                          .store_format = [this] { return store_format; }});
  relay = std::make_unique<LogRelay>(gateway.get(), 16);
  gateway->SetLogSink(relay.get());
  loop->AddObserver(dispatcher.get());
  leases->Start();
}

void World::Restart() {
  committer.Drop();
  relay.reset();
  gateway.reset();
  leases.reset();
  dispatcher.reset();
  loop.reset();
  Start();
  Run();
}

void World::Run() {
  for (int turns = 0; loop->RunTurn() == TurnResult::kWorked; ++turns) REQUIRE(turns < 1000);
}

void World::Advance(absl::Duration by) {
  for (; by > absl::ZeroDuration(); by -= leases->TickPeriod()) {
    clock.Advance(std::min(by, leases->TickPeriod()));
    leases->Tick();
    Run();
  }
}

namespace {

JobSpec MakeSpec(const std::string& name, QueueId queue, const JobOptions& options) {
  JobSpec spec;
  spec.name = name;
  spec.queue = queue;
  GroupSpec group;
  group.name = "worker";
  group.replicas = options.tasks;
  group.min_available = options.min_available > 0 ? options.min_available : options.tasks;
  group.shape.cpu_millis = options.cpu_millis;
  if (options.gpus > 0 || options.share > 0) {
    DeviceRequest gpus;
    gpus.kind = "gpu";
    gpus.count = options.share > 0 ? 1 : options.gpus;
    gpus.share = static_cast<int32_t>(std::lround(options.share * kWhole));
    group.shape.devices.push_back(gpus);
  }
  spec.min_available = group.min_available;
  spec.groups.push_back(group);
  spec.on_node_loss = options.on_node_loss;
  spec.max_retries = options.max_retries;
  spec.kill_grace = options.kill_grace;
  spec.ttl_after_finished = options.ttl_after_finished;
  spec.walltime = options.walltime;
  spec.watchdog = options.watchdog;
  spec.saves_before_drain = options.saves_before_drain;
  spec.suspends_idle = options.suspends_idle;
  spec.checkpoints_devices = options.lends_devices;
  spec.dump_wait = kDefaultDumpWait;
  spec.groups.back().image = ImageIdOf(options.image);
  return spec;
}

ColdPart MakeCold(const std::string& name, const JobOptions& options) {
  v1::JobSpec spec;
  v1::TaskGroup& group = *spec.add_groups();
  group.add_command("run");
  group.add_command(name);
  group.set_working_dir("/work");
  group.set_image(options.image);
  v1::EnvVar& env = *group.add_env();
  env.set_name("JOB");
  env.set_value(name);
  spec.set_kill_signal(options.kill_signal);
  spec.mutable_checkpoint()->set_signal(options.checkpoint_signal);
  if (options.checkpoint_grace > absl::ZeroDuration()) {
    ToProto(options.checkpoint_grace, spec.mutable_checkpoint()->mutable_grace());
  }
  return std::make_shared<const std::string>(EncodeCold(spec));
}

}  // namespace

JobId World::Submit(const std::string& name, JobOptions options) {
  JobId id;
  REQUIRE(loop->Post([&](Turn& turn) {
                id = turn.state().next_job_id();
                const QueueId queue = turn.state().FindQueue("main")->id;
                REQUIRE(turn.Emit(JobSubmitted{id, MakeSpec(name, queue, options)}).ok());
                turn.PutCold(id, MakeCold(name, options));
              })
              .ok());
  Run();
  return id;
}

void World::Cancel(JobId job) {
  REQUIRE(loop->Post(
                  [=](Turn& turn) {
                    REQUIRE(turn.Emit(JobCancelled{job, "test"}).ok());
                  },
                  CommandClass::kEssential)
              .ok());
  Run();
}

Agent::Agent(World* w, std::string node_name, std::string id)
    : world(w), name(std::move(node_name)), agent_id(id.empty() ? "agent-" + name : id) {
  inventory.set_cpu_millis(8000);
  inventory.set_memory_bytes(int64_t{1} << 34);
  inventory.set_address(name + ".example");
}

void Agent::Connect() {
  Hello();
  if (epoch == 0) return;
  v1::AgentMessage nothing_wrong;
  nothing_wrong.set_epoch(epoch);
  nothing_wrong.mutable_conditions();
  Send(std::move(nothing_wrong));
  world->Run();
}

void Agent::Hello() {
  link = std::make_shared<FakeLink>();
  seen_ = 0;
  epoch = 0;
  session = world->gateway->OnConnect(link);
  v1::AgentMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello = last;
  hello.set_knows_incarnations(knows_incarnations);
  hello.set_node(name);
  hello.set_agent_id(agent_id);
  hello.set_boot_id(boot_id);
  hello.set_agent_version("test");
  *hello.mutable_inventory() = inventory;
  for (const auto& [key, report] : journal) *hello.add_tasks() = report;
  Send(message);
  world->Run();
  for (const v1::ServerMessage& welcome : link->Of(v1::ServerMessage::kWelcome)) {
    epoch = welcome.welcome().epoch();
  }
}

void Agent::Disconnect() {
  world->gateway->OnClosed(session);
  link->closed = true;
}

void Agent::Send(v1::AgentMessage message) {
  world->gateway->OnMessage(session, std::move(message));
}

void Agent::Heartbeat() {
  v1::AgentMessage message;
  message.set_epoch(epoch);
  message.mutable_heartbeat()->set_sequence(1);
  Send(message);
}

void Agent::Report(v1::TaskReport report) {
  v1::AgentMessage message;
  message.set_epoch(epoch);
  *message.mutable_report() = std::move(report);
  Send(message);
}

v1::TaskReport Agent::ReportFor(JobId job, uint32_t task, uint32_t attempt,
                                v1::TaskReport::State state) {
  v1::TaskReport report;
  report.set_report_id(next_report_++);
  report.mutable_key()->set_job_uid(job.value);
  report.mutable_key()->set_task(task);
  report.mutable_key()->set_attempt(attempt);
  report.mutable_key()->set_incarnation(incarnation);
  report.set_state(state);
  return report;
}

void Agent::Work() {
  world->Run();
  while (seen_ < link->messages.size()) {
    const v1::ServerMessage message = link->messages[seen_++];
    Handle(message);
    world->Run();
  }
}

void Agent::Start(const Key& key) {
  const auto& [job, task, attempt] = key;
  v1::TaskReport& held = journal.at(key);
  if (held.state() != v1::TaskReport::PREPARED) return;
  ++executions[key];
  held = ReportFor(JobId{job}, task, attempt, v1::TaskReport::RUNNING);
  Report(held);
}

void Agent::Handle(const v1::ServerMessage& message) {
  const auto key_of = [](const v1::TaskKey& key) {
    return Key(key.job_uid(), key.task(), key.attempt());
  };
  if (message.has_report_ack()) {
    const uint64_t id = message.report_ack().report_id();
    acked.push_back(id);
    std::erase_if(journal, [id](const auto& entry) {
      return entry.second.report_id() == id && entry.second.state() == v1::TaskReport::EXITED;
    });
  }
  if (message.has_welcome()) {
    for (const v1::TaskKey& key : message.welcome().forget()) journal.erase(key_of(key));
  }
  if (mute) return;
  if (message.has_prepare()) {
    const Key key = key_of(message.prepare().key());
    if (journal.contains(key)) return;
    prepared[key] = message.prepare();
    const auto& [job, task, attempt] = key;
    journal[key] = ReportFor(JobId{job}, task, attempt, v1::TaskReport::PREPARED);
    if (message.prepare().reserve_port()) journal[key].set_reserved_port(20000);
    if (message.prepare().start_at_once()) return Start(key);
    Report(journal[key]);
  }
  if (message.has_start() && journal.contains(key_of(message.start().key()))) {
    Start(key_of(message.start().key()));
  }
  if (message.has_kill()) {
    const Key key = key_of(message.kill().key());
    const auto& [job, task, attempt] = key;
    v1::TaskReport report = ReportFor(JobId{job}, task, attempt, v1::TaskReport::EXITED);
    report.set_cause(v1::TaskReport::KILLED);
    report.set_exit_signal(15);
    journal[key] = report;
    Report(report);
  }
}

void Agent::Exit(JobId job, uint32_t task, int32_t code) {
  for (auto& [key, held] : journal) {
    const auto& [job_uid, index, attempt] = key;
    if (job_uid != job.value || index != task || held.state() != v1::TaskReport::RUNNING) continue;
    held = ReportFor(job, task, attempt, v1::TaskReport::EXITED);
    held.set_exit_code(code);
    if (!link->closed) Report(held);
  }
  world->Run();
}

bool Agent::Holds(JobId job, uint32_t task, uint32_t attempt) const {
  return journal.contains(Key(job.value, task, attempt));
}

bool Agent::Runs(JobId job, uint32_t task) const {
  for (const auto& [key, held] : journal) {
    const bool same = std::get<0>(key) == job.value && std::get<1>(key) == task;
    if (same && held.state() == v1::TaskReport::RUNNING) return true;
  }
  return false;
}

}  // namespace berth::testing
