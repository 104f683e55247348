#include "server/controllers/mig_keeper.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_join.h"
#include "support/log.h"

namespace berth {
namespace {

const MigGpu* Find(const Node& node, const std::vector<MigGpu>& gpus, const std::string& uuid) {
  const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const MigGpu& gpu) {
    return node.spec.devices[gpu.device].uuid == uuid;
  });
  return found == gpus.end() ? nullptr : &*found;
}

v1::ServerMessage MessageFor(const MigDivision& division) {
  v1::ServerMessage message;
  v1::DivideGpu& divide = *message.mutable_divide_gpu();
  divide.set_gpu(division.gpu);
  for (const MigPart& part : division.layout) {
    v1::GpuPart& added = *divide.add_parts();
    added.set_profile(part.profile);
    added.set_start(part.start);
  }
  return message;
}

}  // namespace

MigKeeper::MigKeeper(Loop* loop, AgentGateway* gateway) : loop_(loop), gateway_(gateway) {
  nodes_ = loop->Read([](const ClusterState& state, uint64_t) {
    std::set<NodeId> found;
    state.nodes().ForEach([&](NodeId id, const Node& node) {
      if (node.spec.divides_gpus) found.insert(id);
    });
    return found;
  });
  loop->AddObserver(this);
}

Effect MigKeeper::OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                                const ColdParts&) {
  for (const Event& event : events) {
    if (const auto* registered = std::get_if<NodeRegistered>(&event.body)) {
      const Node* node = state.nodes().Find(registered->id);
      nodes_.erase(registered->id);
      if (node != nullptr && node->spec.divides_gpus) nodes_.insert(registered->id);
    } else if (const auto* deleted = std::get_if<NodeDeleted>(&event.body)) {
      nodes_.erase(deleted->id);
    }
  }
  return nullptr;
}

void MigKeeper::Tick() {
  if (posted_ || (nodes_.empty() && divisions_.empty())) return;
  posted_ = loop_->Post([this](Turn& turn) { Look(turn); }, CommandClass::kEssential).ok();
}

void MigKeeper::Look(Turn& turn) {
  posted_ = false;
  const ClusterState& state = turn.state();
  Follow(turn);
  NoteIdle(state, turn.now());
  NoteWaiting(state, turn.now());
  const auto may = [&](const Node& node, const MigGpu& gpu) {
    const Gpu key{node.id, node.spec.devices[gpu.device].uuid};
    const auto idle = idle_.find(key);
    const auto rest = rests_.find(key);
    return idle != idle_.end() && turn.now() >= idle->second + kPatience &&
           (rest == rests_.end() || turn.now() >= rest->second.until);
  };
  int tries = kMaxTries;
  for (int i = 0; i < kMaxStarts && divisions_.size() < kMaxDivisions; ++i) {
    std::vector<MigSeeker> seekers = Seekers(turn.now());
    if (seekers.empty()) return;
    std::vector<MigDivision> under_way;
    for (const Division& division : divisions_) under_way.push_back(division.what);
    auto next =
        NextMigDivision(state, turn.policies(), absl::MakeSpan(seekers), under_way, may, &tries);
    NoteSeekers(seekers, turn.now());
    if (!next.has_value()) return;
    divisions_.push_back({.what = *std::move(next), .epoch = 0, .started = turn.now()});
    Send(turn, divisions_.back());
  }
}

void MigKeeper::Follow(Turn& turn) {
  std::erase_if(divisions_, [&](Division& division) { return !Goes(turn, division); });
}

// False: it is over. Whatever else the node has registered in the meantime, its GPU is unchanged.
bool MigKeeper::Goes(Turn& turn, Division& division) {
  const Node* node = turn.state().nodes().Find(division.what.node);
  if (node == nullptr) return false;
  const std::vector<MigGpu> gpus = MigGpusOf(*node);
  const MigGpu* gpu = Find(*node, gpus, division.what.gpu);
  const auto over = [&](bool done, absl::string_view why) {
    End(division, turn.now(), done, why);
    return false;
  };
  if (gpu == nullptr) return over(false, "it is gone");
  if (HasLayout(*node, *gpu, division.what.layout)) return over(true, "");
  if (turn.now() >= division.started + kTimeout) return over(false, "it timed out");
  if (node->status.epoch == division.epoch || node->status.state != NodeState::kReady) return true;
  const bool out_of_service = !node->healthy.Overlaps(gpu->instances);
  if (!out_of_service) return over(false, "the node still allocates its instances");
  if (!IsIdle(DevicesReserved(turn.state()), *node, *gpu)) return over(false, "it is in use");
  const PendingClass* waits = turn.state().pending().FindClass(division.what.asked_by);
  if (waits == nullptr || waits->jobs.empty()) return over(false, "no pending job needs it now");
  if (division.messages == kMaxMessages) return over(false, "the agent does not divide it");
  Send(turn, division);
  return true;
}

void MigKeeper::Send(Turn& turn, Division& division) {
  const Node& node = turn.state().nodes().At(division.what.node);
  division.epoch = node.status.epoch;
  ++division.messages;
  LogInfo("dividing a GPU again",
          {{"node", node.spec.name},
           {"gpu", division.what.gpu},
           {"message", division.messages},
           {"parts",
            absl::StrJoin(division.what.layout, " ", [](std::string* out, const MigPart& part) {
              absl::StrAppend(out, part.profile, "@", part.start);
            })}});
  turn.OnDurable([this, node = node.id, epoch = division.epoch,
                  message = MessageFor(division.what)]() mutable {
    gateway_->SendTo(node, epoch, std::move(message));
  });
}

void MigKeeper::End(const Division& division, Time now, bool done, absl::string_view why) {
  Rest& rest = rests_[{division.what.node, division.what.gpu}];
  rest.failures = done ? 0 : std::min(rest.failures + 1, 10);
  rest.until = now + std::min(kCoolDown * (1 << std::max(rest.failures - 1, 0)), kMaxCoolDown);
  ++(done ? counters_.done : counters_.failed);
  if (done) {
    LogInfo("a GPU was divided again", {{"gpu", division.what.gpu}});
  } else {
    LogWarn("a GPU was not divided again", {{"gpu", division.what.gpu}, {"reason", why}});
  }
}

// Also drops entries that no longer apply, so that neither map outgrows the number of GPUs.
void MigKeeper::NoteIdle(const ClusterState& state, Time now) {
  const ReservedDevices reserved = DevicesReserved(state);
  std::map<Gpu, Time> idle;
  std::map<Gpu, Rest> rests;
  for (const NodeId id : nodes_) {
    const Node& node = state.nodes().At(id);
    for (const MigGpu& gpu : MigGpusOf(node)) {
      const Gpu key{id, node.spec.devices[gpu.device].uuid};
      if (const auto rest = rests_.find(key); rest != rests_.end()) rests.insert(*rest);
      if (!IsIdle(reserved, node, gpu)) continue;
      const auto before = idle_.find(key);
      idle.emplace(key, before == idle_.end() ? now : before->second);
    }
  }
  idle_ = std::move(idle);
  rests_ = std::move(rests);
}

void MigKeeper::NoteWaiting(const ClusterState& state, Time now) {
  std::map<ClassId, Waiting> waiting;
  order_ = ClassesShortOfMig(state);
  for (const ClassId id : order_) {
    const auto before = waiting_.find(id);
    waiting.emplace(id, before == waiting_.end() ? Waiting{.since = now} : before->second);
  }
  waiting_ = std::move(waiting);
}

// In order. Empty if all patient classes are at rest.
std::vector<MigSeeker> MigKeeper::Seekers(Time now) const {
  std::vector<MigSeeker> seekers;
  size_t looked_at = 0, kept = 0;
  for (const ClassId id : order_) {
    const Waiting& waiting = waiting_.at(id);
    if (now < waiting.since + kPatience) continue;
    const bool rests = now < waiting.rests_until;
    if (rests && ++kept > kMaxKept) continue;
    if (!rests && ++looked_at > kMaxClasses) break;
    seekers.push_back({id, waiting.from, rests, rests && waiting.hopeless});
  }
  return looked_at > 0 ? seekers : std::vector<MigSeeker>();
}

void MigKeeper::NoteSeekers(absl::Span<const MigSeeker> seekers, Time now) {
  for (const MigSeeker& seeker : seekers) {
    Waiting& waiting = waiting_.at(seeker.id);
    const bool newly = seeker.rests && now >= waiting.rests_until;
    waiting.from = seeker.rests ? 0 : seeker.from;
    waiting.hopeless = seeker.hopeless;
    if (newly) waiting.rests_until = now + kRest;
  }
}

}  // namespace berth
