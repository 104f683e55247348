#include "tests/simulation/ha/world.h"

#include <algorithm>
#include <iostream>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "server/ha/joining.h"
#include "storage/hash_chain.h"

namespace berth::simulation {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(2);  // of one attempt of a client
constexpr absl::Duration kGiveUp = absl::Seconds(90);  // of an operation
constexpr absl::Duration kPause = absl::Seconds(8);    // between operations, mean
constexpr absl::Duration kBeat = absl::Seconds(4);     // of agents
constexpr size_t kOperationsPerJob = 12;

}  // namespace

struct HaWorld::Client {
  size_t index = 0;
  size_t host = 0;  // the one that it asks
  uint64_t jobs = 0, operations = 0;
  std::string job;
  Operation operation;
  uint64_t attempt = 0;  // number of the last; 0: no operation is under way
  bool under_way = false;
  ActorPtr actor = std::make_shared<Actor>();
};

struct HaWorld::Agent {
  std::string name;
  size_t host = 0;
  uint64_t epoch = 0;  // 0: not registered
  uint64_t sequence = 0, answered = 0;
  uint64_t term = 0;  // the highest that it has heard of
  absl::Duration lease_end;
  std::map<uint64_t, absl::Duration> fenced;  // by epoch: when
  ActorPtr actor = std::make_shared<Actor>();
};

HaWorld::HaWorld(const HaOptions& options)
    : options_(options), dice_(options.seed, 0x68617764), etcd_(options.seed) {
  etcd_.on_write = [this](const std::string& key, const KvItem* before, const KvItem* after) {
    OnWrite(key, before, after);
  };
  MakeHosts();
  for (size_t i = 0; i < options.clients; ++i) {
    clients_.push_back(std::make_unique<Client>());
    clients_.back()->index = i;
  }
  for (size_t i = 0; i < options.agents; ++i) {
    agents_.push_back(std::make_unique<Agent>());
    agents_.back()->name = absl::StrCat("n", i);
  }
}

HaWorld::~HaWorld() = default;

void HaWorld::MakeHosts() {
  MemoryStore first("simulated", kStoreFormat, 1);
  SimulatedEtcd::Client operators;
  const std::unique_ptr<Kv> kv = etcd_.Connect(&operators);
  if (!BeginGeneration(*kv, first, 0).ok()) Fail("the cluster cannot begin");
  for (size_t i = 0; i < options_.hosts; ++i) {
    hosts_.push_back(std::make_unique<Host>(
        HostOptions{.name = absl::StrCat("h", i)},
        Host::Around{
            .scheduler = &scheduler_,
            .horizon = &horizon_,
            .etcd = &etcd_,
            .healed = &healed_,
            .fail = [this](const std::string& what) { Fail(what); },
            .other_store = [this](const Host& host) -> const MemoryStore* {
              const MemoryStore* best = nullptr;
              for (const auto& other : hosts_) {
                if (other.get() == &host || !other->up()) continue;
                if (best == nullptr || other->disk().LastSequence() > best->LastSequence()) {
                  best = &other->disk();
                }
              }
              return best;
            },
            .on_durable = [this](const Host& host, uint64_t revision,
                                 const std::string& turn) { OnDurable(host, revision, turn); },
            .on_event = [this](const Host& host, const Event& event) { CheckFence(host, event); }},
        first.Copy(1), dice_.Seed()));
    hosts_.back()->etcd().faults = {
        .lost_before = 0.002, .lost_after = 0.002, .later = 0.002, .behind = 5, .delivered = 0.01};
  }
}

void HaWorld::Fail(const std::string& what) {
  if (!outcome_.failure.empty()) return;
  outcome_.failure = absl::StrCat(absl::FormatDuration(scheduler_.now()), ": ", what);
}

void HaWorld::Note(const std::string& what) {
  if (options_.print) std::cout << absl::FormatDuration(scheduler_.now()) << "  " << what << "\n";
}

HaOutcome HaWorld::Run() {
  for (const auto& host : hosts_) host->Start();
  for (const auto& client : clients_) {
    scheduler_.After(absl::Seconds(1), client->actor, [this, &client] { Begin(*client); });
  }
  for (const auto& agent : agents_) {
    scheduler_.After(absl::Seconds(1), agent->actor, [this, &agent] { Beat(*agent); });
  }
  Faults();
  const absl::Duration end = absl::Hours(1) * options_.hours;
  while (outcome_.failure.empty() && scheduler_.Step(end)) {
  }
  Heal();
  const absl::Duration last = end + absl::Minutes(10);
  while (outcome_.failure.empty() && scheduler_.Step(last)) {
  }
  if (outcome_.failure.empty()) CheckEnd();
  outcome_.steps = scheduler_.steps();
  for (const auto& host : hosts_) outcome_.terms += host->terms_led();
  return outcome_;
}

// ---- Clients

void HaWorld::Begin(Client& client) {
  if (client.job.empty() || histories_[client.job].size() >= kOperationsPerJob) {
    client.job = absl::StrCat("c", client.index, "-", ++client.jobs);
  }
  // Others' jobs, too: then several clients write and read one.
  if (dice_.Chance(0.4)) client.job = clients_[dice_.Below(clients_.size())]->job;
  std::vector<Operation>& history = histories_[client.job];
  if (client.job.empty() || history.size() >= 60) {
    client.job.clear();
    scheduler_.After(Delay(), client.actor, [this, &client] { Begin(client); });
    return;
  }
  using Kind = Operation::Kind;
  const Kind kind = history.empty()     ? Kind::kSubmit
                    : dice_.Chance(0.5) ? Kind::kUpdate
                                        : Kind::kGet;
  client.operation = {.kind = kind,
                      .value = static_cast<int32_t>(++outcome_.operations),
                      .begin = scheduler_.now()};
  client.under_way = true;
  ++client.operations;
  Try(client, ++client.attempt);
}

void HaWorld::Try(Client& client, uint64_t attempt) {
  if (!client.under_way || attempt != client.attempt) return;
  if (scheduler_.now() - client.operation.begin > kGiveUp) {
    Answered(client, attempt, absl::DeadlineExceededError("given up"));
    return;
  }
  Host& host = *hosts_[client.host];
  const std::string request = absl::StrCat(client.index, ".", client.operations);
  const auto answer = [this, &client, attempt](absl::StatusOr<int64_t> result) {
    if (Lost()) return;
    scheduler_.After(Delay(), client.actor,
                     [this, &client, attempt, result] { Answered(client, attempt, result); });
  };
  if (!Lost()) {
    const Operation operation = client.operation;
    const std::string job = client.job;
    scheduler_.After(Delay(), host.actor(), [&host, operation, job, request, answer] {
      switch (operation.kind) {
        case Operation::Kind::kSubmit:
          return host.Submit(job, request, answer);
        case Operation::Kind::kUpdate:
          return host.Update(job, operation.value, request, answer);
        case Operation::Kind::kGet:
          return host.Get(job, answer);
      }
    });
  }
  scheduler_.After(kTimeout, client.actor, [this, &client, attempt] {
    if (!client.under_way || attempt != client.attempt) return;
    client.host = dice_.Below(hosts_.size());
    Try(client, ++client.attempt);
  });
}

void HaWorld::Answered(Client& client, uint64_t attempt, absl::StatusOr<int64_t> result) {
  if (!client.under_way || attempt != client.attempt) return;
  const bool final =
      result.ok() || absl::IsNotFound(result.status()) || absl::IsDeadlineExceeded(result.status());
  if (!final) {  // another server
    client.host = dice_.Below(hosts_.size());
    scheduler_.After(absl::Milliseconds(100), client.actor, [this, &client, attempt] {
      if (client.under_way && attempt == client.attempt) Try(client, ++client.attempt);
    });
    return;
  }
  client.under_way = false;
  Operation& operation = client.operation;
  if (absl::IsDeadlineExceeded(result.status())) {
    ++outcome_.unanswered;
    if (healed_ && operation.begin > absl::Hours(1) * options_.hours + absl::Minutes(2)) {
      Fail("a client got no answer although all faults are over");
    }
  } else {
    operation.end = scheduler_.now();
    operation.found = result.ok();
    if (operation.kind == Operation::Kind::kGet && result.ok()) {
      operation.value = static_cast<int32_t>(*result);
    }
  }
  const bool nothing = !operation.end.has_value() && operation.kind == Operation::Kind::kGet;
  if (!nothing) histories_[client.job].push_back(operation);
  scheduler_.After(dice_.Around(kPause), client.actor, [this, &client] { Begin(client); });
}

// ---- Agents

void HaWorld::Beat(Agent& agent) {
  Host& host = *hosts_[agent.host];
  const absl::Duration sent = scheduler_.now();
  const uint64_t sequence = ++agent.sequence;
  const uint64_t epoch = agent.epoch;
  const auto answer = [this, &agent, &host, sent, sequence, epoch](absl::StatusOr<int64_t> result) {
    if (Lost()) return;
    const uint64_t term = host.term();
    scheduler_.After(Delay(), agent.actor, [this, &agent, sent, sequence, epoch, term, result] {
      if (sequence != agent.sequence || term < agent.term) return;
      agent.answered = sequence;
      if (result.ok()) {
        agent.term = std::max(agent.term, term);
        if (epoch == 0) agent.epoch = static_cast<uint64_t>(*result);
        return Acked(agent, sent);
      }
      if (absl::IsFailedPrecondition(result.status())) agent.epoch = 0;
      if (absl::IsUnavailable(result.status())) agent.host = dice_.Below(hosts_.size());
    });
  };
  if (!Lost()) {
    scheduler_.After(Delay(), host.actor(), [&host, name = agent.name, epoch, sequence, answer] {
      if (epoch == 0) {
        host.Register(name, answer);
      } else {
        host.Heartbeat(name, epoch, sequence, answer);
      }
    });
  }
  scheduler_.After(kBeat, agent.actor, [this, &agent, sequence] {
    if (agent.answered != sequence && dice_.Chance(0.5)) {
      agent.host = dice_.Below(hosts_.size());  // another connection needs another session
      agent.epoch = 0;
    }
    Beat(agent);
  });
}

void HaWorld::Acked(Agent& agent, absl::Duration sent) {
  agent.lease_end = std::max(agent.lease_end, sent + hosts_[0]->options().agent_lease);
  const auto fenced = agent.fenced.find(agent.epoch);
  if (fenced != agent.fenced.end() && fenced->second < agent.lease_end) {
    Fail(absl::StrCat(agent.name, " holds a lease after it was fenced"));
  }
}

void HaWorld::CheckFence(const Host& host, const Event& event) {
  const auto* fence = std::get_if<NodeFenced>(&event.body);
  if (fence == nullptr) return;
  ++outcome_.fences;
  // Nodes get their ids in the order in which they first registered.
  for (const auto& agent : agents_) {
    if (agent->name != host.NameOf(fence->id)) continue;
    agent->fenced[agent->epoch] = scheduler_.now();
    if (agent->lease_end > scheduler_.now()) {
      Fail(absl::StrCat(agent->name, " is fenced ",
                        absl::FormatDuration(agent->lease_end - scheduler_.now()),
                        " before its lease is over"));
    }
  }
}

// ---- Faults

void HaWorld::Faults() {
  scheduler_.After(dice_.Around(absl::Seconds(20)), world_, [this] {
    if (healed_) return;
    OneFault();
    Faults();
  });
}

void HaWorld::OneFault() {
  ++outcome_.faults;
  Host& host = *hosts_[dice_.Below(hosts_.size())];
  const absl::Duration length = dice_.Around(absl::Seconds(15));
  const auto undo = [&](std::function<void()> action) {
    scheduler_.After(length, world_, [action = std::move(action)] { action(); });
  };
  switch (dice_.Below(11)) {
    case 0:
    case 1:
      Note(absl::StrCat("kill ", host.name()));
      return host.Crash(/*power_cut=*/false);
    case 2:
      Note(absl::StrCat("power cut at ", host.name()));
      return host.Crash(/*power_cut=*/true);
    case 3:
    case 4:
      Note(absl::StrCat("stop ", host.name(), " for ", absl::FormatDuration(length)));
      return host.Pause(length);
    case 5:
      Note(absl::StrCat("cut ", host.name(), " from etcd"));
      host.etcd().cut = true;
      return undo([&host] { host.etcd().cut = false; });
    case 6:
      Note(absl::StrCat("etcd is unreliable for ", host.name()));
      host.etcd().faults = {
          .lost_before = 0.2, .lost_after = 0.2, .later = 0.2, .behind = 300, .delivered = 0.05};
      return undo([&host] {
        host.etcd().faults = {.lost_before = 0.002,
                              .lost_after = 0.002,
                              .later = 0.002,
                              .behind = 5,
                              .delivered = 0.01};
      });
    case 7:
      if (dice_.Chance(0.7)) {
        Note("hand over");
        for (const auto& each : hosts_) each->HandOver();
        return;
      }
      Note("etcd is full");
      etcd_.full = true;
      return undo([this] { etcd_.full = false; });
    case 8:
      Note(absl::StrCat("the clock of ", host.name(), " jumps"));
      return host.JumpClock(dice_.Between(-absl::Hours(2), absl::Hours(2)));
    case 9:
      Note(absl::StrCat("the disk of ", host.name(), " is full"));
      host.SetDiskFull(true);
      return undo([&host] { host.SetDiskFull(false); });
    default:
      Note("late writes happen");
      return etcd_.DeliverLate();
  }
}

void HaWorld::Heal() {
  healed_ = true;
  etcd_.full = false;
  etcd_.DeliverLate();
  for (const auto& host : hosts_) {
    host->etcd().cut = false;
    host->SetDiskFull(false);
    host->etcd().faults = {};
    host->actor()->paused_until = -absl::InfiniteDuration();
    host->Start();
  }
}

// ---- Rules

void HaWorld::OnWrite(const std::string& key, const KvItem* before, const KvItem* after) {
  const auto place = layout_.ParsePart(key);
  if (!place.ok() || after == nullptr) return;
  store::v1::ReplicatedPart part;
  const KvItem* leader = etcd_.Find(layout_.Leader());
  if (!part.ParseFromString(after->value) || leader == nullptr) return Fail("a part is not valid");
  if (before != nullptr) Fail("a part is overwritten");
  if (part.term() != static_cast<uint64_t>(leader->mod_revision)) {
    Fail(
        absl::StrCat("a part of term ", part.term(), " is written in term ", leader->mod_revision));
  }
  part_terms_[place->first] = part.term();
  const auto entry = part_terms_.find(place->first);
  if (entry != part_terms_.begin() && std::prev(entry)->second > part.term()) {
    Fail("terms go back in the log");
  }
  // What is behind belonged to a group that was cut off.
  part_terms_.erase(std::next(entry), part_terms_.end());
}

void HaWorld::OnDurable(const Host& host, uint64_t revision, const std::string& turn) {
  const auto [known, added] = turns_.try_emplace(revision, turn);
  if (!added && known->second != turn) {
    Fail(absl::StrCat(host.name(), " has another turn for revision ", revision));
  }
}

void HaWorld::CheckEnd() {
  const Host* leader = nullptr;
  for (const auto& host : hosts_) {
    // One that was stopped may not know yet that another leads.
    if (host->leads() && (leader == nullptr || host->term() > leader->term())) leader = host.get();
  }
  if (leader == nullptr) return Fail("no server leads although all faults are over");
  if (leader->disk().LastSequence() < turns_.rbegin()->first) {
    Fail(absl::StrCat("revision ", turns_.rbegin()->first, " was durable, but ", leader->name(),
                      " leads with ", leader->disk().LastSequence()));
  }
  for (const auto& host : hosts_) {
    if (host->disk().LastSequence() + 20 < leader->disk().LastSequence()) {
      Fail(absl::StrCat(host->name(), " has not caught up"));
    }
  }
  for (const auto& [job, history] : histories_) {
    if (const std::string wrong = CheckHistory(history); !wrong.empty()) {
      Fail(absl::StrCat("job ", job, ": ", wrong));
    }
  }
}

}  // namespace berth::simulation
