#include "server/controllers/lease_keeper.h"

#include <algorithm>

#include "core/base/check.h"
#include "storage/codec.h"
#include "storage/keys.h"
#include "support/log.h"

namespace berth {
namespace {

// The longest time that a strict task of the node may take to die after the agent's lease expired.
absl::Duration LongestGrace(const ClusterState& state, const Node& node) {
  absl::Duration longest = absl::ZeroDuration();
  for (const TaskKey& key : node.tasks) {
    const Job& job = state.jobs().At(key.job);
    if (job.on_node_loss == NodeLossPolicy::kFence) longest = std::max(longest, job.kill_grace);
  }
  return longest;
}

}  // namespace

absl::StatusOr<GrantedLease> ReadGrantedLease(const Store& store) {
  const absl::StatusOr<std::string> value = store.Read(RecordKind::kMeta, kLeaseKey);
  if (absl::IsNotFound(value.status())) return GrantedLease{};
  if (!value.ok()) return value.status();
  return DecodeLeaseRecord(*value);
}

LeaseKeeper::LeaseKeeper(Loop* loop, Clock* clock, LeaseOptions options)
    : loop_(loop), clock_(clock), options_(options), recorded_(options.granted_before) {
  loop->AddObserver(this);
}

void LeaseKeeper::Start(const GrantedLease& before) {
  const absl::Duration now = clock_->Steady();
  const bool longer = before.longest > before.usual;
  std::set<NodeId> all;
  std::map<NodeId, Lease> leases = loop_->Read([&](const ClusterState& state, uint64_t) {
    std::map<NodeId, Lease> found;
    state.nodes().ForEach([&](NodeId id, const Node& node) {
      all.insert(id);
      if (node.status.state == NodeState::kLost) return;
      const bool silent = node.status.state == NodeState::kSilent;
      found[id] = {.epoch = node.status.epoch,
                   .phase = silent ? Phase::kSilent : Phase::kAlive,
                   .heard = now,
                   .grace = silent ? LongestGrace(state, node) : absl::ZeroDuration(),
                   .longer_end = longer ? now + before.longest : absl::ZeroDuration()};
    });
    return found;
  });
  {
    absl::MutexLock lock(&mutex_);
    recorded_ = before;
    leases_ = std::move(leases);
    last_tick_ = now;
    old_leases_end_ = now + before.usual;
    holding_ = before.restored;
    hold_end_ = now + options_.restore_hold;
    if (holding_) awaited_ = std::move(all);
  }
  if (!before.restored) return;
  const absl::Status posted =
      loop_->Post([this](Turn& turn) { SilenceAll(turn); }, CommandClass::kEssential);
  BERTH_CHECK(posted.ok());  // nothing else is queued before the first turn
}

// The nodes' records in a backup belong to another incarnation. Until the nodes come back, nothing
// counts as prepared or running there: otherwise a gang could start with the members that came back
// first.
void LeaseKeeper::SilenceAll(Turn& turn) {
  std::vector<std::pair<NodeId, uint64_t>> ready;
  turn.state().nodes().ForEach([&](NodeId id, const Node& node) {
    if (node.status.state == NodeState::kReady) ready.emplace_back(id, node.status.epoch);
  });
  for (const auto& [id, epoch] : ready) Silence(turn, id, epoch);
  PutRecord(turn);
}

// Only registered agents send heartbeats, and an agent registers when the tasks of the previous
// store are gone.
void LeaseKeeper::EndHold(absl::Duration now) {
  {
    absl::MutexLock lock(&mutex_);
    if (!holding_ || (!awaited_.empty() && now < hold_end_)) return;
    LogInfo("jobs are placed again after the restore", {{"nodes_missing", awaited_.size()}});
    holding_ = recorded_.restored = false;
    awaited_.clear();
  }
  loop_->ReleasePolicies();
  const absl::Status posted =
      loop_->Post([this](Turn& turn) { PutRecord(turn); }, CommandClass::kEssential);
  if (!posted.ok())
    LogWarn("cannot record the end of the hold; a restart would wait for all nodes again",
            {{"error", posted}});
}

RestoreHold LeaseKeeper::Hold() const {
  absl::MutexLock lock(&mutex_);
  if (!holding_) return {};
  return {.left = std::max(hold_end_ - clock_->Steady(), absl::Milliseconds(1)),
          .nodes = {awaited_.begin(), awaited_.end()}};
}

void LeaseKeeper::PutRecord(Turn& turn) {
  GrantedLease granted;
  {
    absl::MutexLock lock(&mutex_);
    granted = recorded_;
  }
  turn.Put({RecordKind::kMeta, std::string(kLeaseKey), EncodeLeaseRecord(granted)});
}

void LeaseKeeper::RecordGrant(Turn& turn) {
  {
    absl::MutexLock lock(&mutex_);
    if (recorded_.usual >= options_.lease) return;
    recorded_.usual = options_.lease;
    recorded_.longest = std::max(recorded_.longest, options_.lease);
  }
  PutRecord(turn);
}

bool LeaseKeeper::OnlyUsualLeasesLeft(absl::Duration now) const {
  if (now < old_leases_end_ || starting_pauses_ > 0 || PauseLeft(now) > absl::ZeroDuration()) {
    return false;
  }
  return std::all_of(leases_.begin(), leases_.end(),
                     [now](const auto& entry) { return entry.second.longer_end <= now; });
}

// Leases granted by earlier servers and pauses are over: only the usual ones are left.
void LeaseKeeper::LowerRecord(absl::Duration now) {
  GrantedLease before;
  {
    absl::MutexLock lock(&mutex_);
    if (recorded_.longest <= options_.lease || !OnlyUsualLeasesLeft(now)) return;
    before = std::exchange(recorded_, {options_.lease, options_.lease, recorded_.restored});
  }
  const absl::Status posted =
      loop_->Post([this](Turn& turn) { PutRecord(turn); }, CommandClass::kEssential);
  if (posted.ok()) return;
  absl::MutexLock lock(&mutex_);
  recorded_ = {std::max(recorded_.longest, before.longest), std::max(recorded_.usual, before.usual),
               recorded_.restored};  // at the next tick
}

absl::Duration LeaseKeeper::SilentAt(const Lease& lease) const {
  return std::max(lease.heard + options_.lease, old_leases_end_);
}

absl::Duration LeaseKeeper::EndOf(const Lease& lease) const {
  return std::max(SilentAt(lease), lease.longer_end);
}

// Until it confirms its Welcome, the agent may hold its previous lease.
void LeaseKeeper::Registered(NodeId node, uint64_t epoch) {
  absl::MutexLock lock(&mutex_);
  const absl::Duration longer_end = leases_[node].longer_end;
  leases_[node] = {.epoch = epoch,
                   .phase = Phase::kAlive,
                   .heard = clock_->Steady(),
                   .grace = {},
                   .longer_end = longer_end};
}

std::optional<absl::Duration> LeaseKeeper::Heartbeat(NodeId node, uint64_t epoch,
                                                     const Beat& beat) {
  absl::MutexLock lock(&mutex_);
  Lease* lease = Find(node, epoch);
  if (lease == nullptr || lease->phase != Phase::kAlive) return std::nullopt;
  lease->heard = clock_->Steady();
  awaited_.erase(node);
  lease->sequence = std::max(lease->sequence, beat.sequence);
  Note(*lease, beat);
  return GrantLonger(*lease, lease->heard);
}

// Acks are handled in order, and each replaces the lease of the previous one, as a Welcome does. So
// an agent with the usual lease that has handled all acks with longer ones holds no longer one.
void LeaseKeeper::Note(Lease& lease, const Beat& beat) {
  if (beat.lease == absl::ZeroDuration()) return;
  if (beat.lease > options_.lease) {
    if (beat.lease >= PauseLeft(lease.heard)) lease.confirmed = true;
    return;
  }
  if (lease.longer_here && beat.acked <= lease.longer_sequence) return;
  lease.longer_end = absl::ZeroDuration();
  lease.longer_here = false;
}

absl::Duration LeaseKeeper::PauseLeft(absl::Duration now) const {
  return std::max(pause_end_ - now, absl::ZeroDuration());
}

absl::Duration LeaseKeeper::GrantLonger(Lease& lease, absl::Duration now) {
  const absl::Duration left = PauseLeft(now);
  if (left <= options_.lease) return absl::ZeroDuration();
  lease.longer_end = std::max(lease.longer_end, now + left);
  lease.longer_here = true;
  lease.longer_sequence = lease.sequence;
  return left;
}

std::optional<LeaseKeeper::Grant> LeaseKeeper::GrantNow(NodeId node, uint64_t epoch) {
  absl::MutexLock lock(&mutex_);
  Lease* lease = Find(node, epoch);
  if (lease == nullptr || lease->phase != Phase::kAlive || lease->confirmed) return std::nullopt;
  const absl::Duration longer = GrantLonger(*lease, clock_->Steady());
  if (longer == absl::ZeroDuration()) return std::nullopt;
  return Grant{lease->sequence, longer};
}

void LeaseKeeper::BeginPause(Turn& turn, absl::Duration how_long, bool extend,
                             std::function<void()> begun) {
  {
    absl::MutexLock lock(&mutex_);
    ++starting_pauses_;
    recorded_.longest = std::max(recorded_.longest, how_long);
    recorded_.usual = std::max(recorded_.usual, options_.lease);
  }
  PutRecord(turn);
  turn.OnDurable([this, how_long, extend, begun = std::move(begun)] {
    {
      absl::MutexLock lock(&mutex_);
      --starting_pauses_;
      const absl::Duration end = clock_->Steady() + how_long;
      pause_end_ = extend ? std::max(pause_end_, end) : end;
      for (auto& [node, lease] : leases_) lease.confirmed = false;
    }
    begun();
  });
}

void LeaseKeeper::EndPause() {
  absl::MutexLock lock(&mutex_);
  pause_end_ = absl::ZeroDuration();
  for (auto& [node, lease] : leases_) lease.confirmed = false;
}

PauseStatus LeaseKeeper::Pause() const {
  PauseStatus status;
  absl::MutexLock lock(&mutex_);
  status.left = PauseLeft(clock_->Steady());
  if (status.left == absl::ZeroDuration()) return status;
  for (const auto& [node, lease] : leases_) {
    if (lease.confirmed && lease.phase == Phase::kAlive) {
      ++status.holding;
    } else {
      status.not_holding.push_back(node);
    }
  }
  return status;
}

void LeaseKeeper::Tick() {
  Due lapsed, fenceable;
  const absl::Duration now = clock_->Steady();
  LowerRecord(now);
  EndHold(now);
  {
    absl::MutexLock lock(&mutex_);
    ExtendLeasesIfLate(now);
    last_tick_ = now;
    lapsed = TakeLapsed(now);
    CountSilent();
    fenceable = TakeFenceable(now);
  }
  for (const auto& [node, epoch] : lapsed) PostSilence(node, epoch);
  for (const auto& [node, epoch] : fenceable) PostFence(node, epoch);
}

// Time that this process slept says nothing about the agents: their heartbeats may be unread.
void LeaseKeeper::ExtendLeasesIfLate(absl::Duration now) {
  const absl::Duration late = now - last_tick_ - TickPeriod();
  if (late <= options_.lease / 2) return;
  LogWarn("the server was stopped or starved: every node gets a new lease",
          {{"late", absl::FormatDuration(late)}});
  for (auto& [node, lease] : leases_) lease.heard = now;
}

LeaseKeeper::Due LeaseKeeper::TakeLapsed(absl::Duration now) {
  Due due;
  for (auto& [node, lease] : leases_) {
    if (lease.phase != Phase::kAlive || now < SilentAt(lease)) continue;
    lease.phase = Phase::kSilencing;
    due.emplace_back(node, lease.epoch);
  }
  return due;
}

void LeaseKeeper::CountSilent() {
  silent_ = std::count_if(leases_.begin(), leases_.end(),
                          [](const auto& entry) { return entry.second.phase != Phase::kAlive; });
  const double bound = options_.brake_share * static_cast<double>(leases_.size());
  const bool brake = silent_ >= kBrakeLeastNodes && static_cast<double>(silent_) > bound;
  if (brake != braking_) {
    LogWarn(brake ? "too many nodes are silent at once: fencing is suspended"
                  : "few nodes are silent: fencing resumes",
            {{"silent", silent_}, {"nodes", leases_.size()}});
  }
  braking_ = brake;
}

LeaseKeeper::Due LeaseKeeper::TakeFenceable(absl::Duration now) {
  Due due;
  if (braking_) return due;
  for (auto& [node, lease] : leases_) {
    if (lease.phase != Phase::kSilent) continue;
    if (now < EndOf(lease) + lease.grace + options_.fence_margin) continue;
    lease.phase = Phase::kFencing;
    due.emplace_back(node, lease.epoch);
  }
  return due;
}

// A command that cannot be posted is retried at the next tick.
void LeaseKeeper::PostSilence(NodeId node, uint64_t epoch) {
  const absl::Status posted = loop_->Post(
      [this, node, epoch](Turn& turn) { Silence(turn, node, epoch); }, CommandClass::kEssential);
  if (!posted.ok()) Enter(node, epoch, Phase::kAlive, absl::ZeroDuration());
}

void LeaseKeeper::PostFence(NodeId node, uint64_t epoch) {
  const absl::Status posted = loop_->Post(
      [this, node, epoch](Turn& turn) { Fence(turn, node, epoch); }, CommandClass::kEssential);
  if (!posted.ok()) Enter(node, epoch, Phase::kSilent, absl::ZeroDuration());
}

// Another epoch or state: the node has registered in the meantime, or is gone. Its lease shows that
// already, or will when it is durable.
void LeaseKeeper::Silence(Turn& turn, NodeId id, uint64_t epoch) {
  const Node* node = turn.state().nodes().Find(id);
  if (node == nullptr || node->status.epoch != epoch) return;
  if (node->status.state != NodeState::kReady) return;
  const absl::Duration grace = LongestGrace(turn.state(), *node);
  LogWarn("node is silent", {{"node", node->spec.name}, {"tasks", node->tasks.size()}});
  const absl::Status status = turn.Emit(NodeSilenced{id});
  BERTH_CHECK(status.ok());
  turn.OnDurable([this, id, epoch, grace] {
    Enter(id, epoch, Phase::kSilent, grace);
    if (on_silenced_ != nullptr) on_silenced_(id, epoch);
  });
}

void LeaseKeeper::Fence(Turn& turn, NodeId id, uint64_t epoch) {
  const Node* node = turn.state().nodes().Find(id);
  if (node == nullptr || node->status.epoch != epoch) return;
  if (node->status.state != NodeState::kSilent) return;
  LogWarn("node is lost: its strict tasks are certain to have stopped",
          {{"node", node->spec.name}, {"tasks", node->tasks.size()}});
  const absl::Status status = turn.Emit(NodeFenced{id});
  BERTH_CHECK(status.ok());
  turn.OnDurable([this, id, epoch] { Drop(id, epoch); });
}

LeaseKeeper::Lease* LeaseKeeper::Find(NodeId node, uint64_t epoch) {
  auto found = leases_.find(node);
  return found != leases_.end() && found->second.epoch == epoch ? &found->second : nullptr;
}

void LeaseKeeper::Enter(NodeId node, uint64_t epoch, Phase phase, absl::Duration grace) {
  absl::MutexLock lock(&mutex_);
  Lease* lease = Find(node, epoch);
  if (lease == nullptr) return;
  lease->phase = phase;
  lease->grace = std::max(lease->grace, grace);
}

void LeaseKeeper::Drop(NodeId node, uint64_t epoch) {
  absl::MutexLock lock(&mutex_);
  if (Find(node, epoch) != nullptr) leases_.erase(node);
}

Effect LeaseKeeper::OnTurnApplied(const ClusterState&, absl::Span<const Event> events,
                                  const ColdParts&) {
  std::vector<NodeId> deleted;
  for (const Event& event : events) {
    if (const auto* gone = std::get_if<NodeDeleted>(&event.body)) deleted.push_back(gone->id);
  }
  if (deleted.empty()) return nullptr;
  return [this, deleted = std::move(deleted)] {
    absl::MutexLock lock(&mutex_);
    for (NodeId node : deleted) {
      leases_.erase(node);
      awaited_.erase(node);
    }
  };
}

bool LeaseKeeper::braking() const {
  absl::MutexLock lock(&mutex_);
  return braking_;
}

int64_t LeaseKeeper::silent() const {
  absl::MutexLock lock(&mutex_);
  return silent_;
}

}  // namespace berth
