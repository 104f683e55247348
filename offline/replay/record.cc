#include "offline/replay/record.h"

#include <algorithm>
#include <utility>

#include "core/engine/search/demand_watch.h"

namespace berth::replay {
namespace {

double Part(int64_t held, int64_t of) {
  return of <= 0 ? 0 : static_cast<double>(held) / static_cast<double>(of);
}

// For each device, its index among the GPUs of the node.
std::vector<size_t> GpusOf(const Node& node) {
  std::vector<size_t> gpus(node.spec.devices.size());
  size_t count = 0;
  for (size_t i = 0; i < gpus.size(); ++i) {
    gpus[i] = count;
    count += node.spec.devices[i].kind == kSharedKind ? 1 : 0;
  }
  return gpus;
}

std::vector<const Node*> InOrder(const ClusterState& state) {
  std::vector<std::pair<std::string, const Node*>> nodes;
  state.nodes().ForEach([&](NodeId, const Node& node) {
    const HyperNode* domain = state.DomainOf(node, kNetworkKind);
    nodes.emplace_back(domain == nullptr ? "" : domain->spec.name, &node);
  });
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const Node*> ordered;
  for (const auto& [domain, node] : nodes) ordered.push_back(node);
  return ordered;
}

}  // namespace

Recorder::Recorder(const ClusterState& state, bool on) : state_(state), on_(on) {
  if (!on) return;
  const auto gpu = state.interner().FindKind(kSharedKind);
  if (gpu.has_value() && state.capacity()[*gpu] > 0) main_ = *gpu;
  capacity_ = state.capacity()[main_];
  record_.resource = state.interner().KindName(main_);
  spans_ = main_ != kCpu && capacity_ <= kMaxSpanDevices * kWhole;
  for (const Node* node : InOrder(state)) {
    if (index_.size() <= node->id.value) index_.resize(node->id.value + 1);
    index_[node->id.value] = record_.nodes.size();
    const HyperNode* domain = state.DomainOf(*node, kNetworkKind);
    record_.nodes.push_back({.name = node->spec.name,
                             .domain = domain == nullptr ? "" : domain->spec.name,
                             .gpus = main_ == kCpu ? 0 : node->capacity[main_] / kWhole});
    gpu_of_.push_back(GpusOf(*node));
  }
}

double Recorder::HeldPart(const Resources& held) const { return Part(held[main_], capacity_); }

void Recorder::Happens(const Moment& moment) {
  if (!on_) return;
  if (record_.moments.empty() || record_.moments.back().time < moment.time) {
    record_.moments.push_back(moment);
  } else {
    record_.moments.back() = moment;
  }
}

void Recorder::Share(double time, OwnerKind kind, size_t owner, double share) {
  if (!on_) return;
  auto& shares = kind == OwnerKind::kQueue ? record_.queue_shares : record_.user_shares;
  shares.push_back({time, owner, share});
}

void Recorder::Look(double time, const Node& node) {
  if (!on_) return;
  record_.node_moments.push_back({.time = time,
                                  .node = index_[node.id.value],
                                  .held = Part(node.allocated[main_], node.capacity[main_]),
                                  .ready = node.status.state == NodeState::kReady});
}

void Recorder::Bound(double time, size_t job, const TasksBound& bound) {
  if (!on_ || !spans_) return;
  const Job& now = state_.jobs().At(bound.job);
  LookAtJob(time, job, &now);  // some may have stopped and started at the same moment
  std::vector<OpenSpan>& open = open_[job];
  for (const Placement& place : bound.placements) {
    const Node& node = state_.nodes().At(place.node);
    const size_t index = index_[node.id.value];
    for (size_t i = 0; i < node.spec.devices.size(); ++i) {
      if (!place.devices.Has(i) || node.spec.devices[i].kind != kSharedKind) continue;
      open.push_back(
          {.span = {.node = index, .device = gpu_of_[index][i], .job = job, .start = time},
           .task = place.task,
           .attempt = now.tasks[place.task].attempt});
    }
  }
}

void Recorder::Close(double time, const OpenSpan& open) {
  if (time <= open.span.start) return;
  record_.spans.push_back(open.span);
  record_.spans.back().end = time;
}

void Recorder::LookAtJob(double time, size_t job, const Job* now) {
  const auto found = open_.find(job);
  if (found == open_.end()) return;
  std::vector<OpenSpan> kept;
  for (const OpenSpan& open : found->second) {
    const Task* task = now == nullptr ? nullptr : &now->tasks[open.task];
    if (task != nullptr && task->attempt == open.attempt && Occupies(task->state)) {
      kept.push_back(open);
    } else {
      Close(time, open);
    }
  }
  if (kept.empty()) {
    open_.erase(found);
  } else {
    found->second = std::move(kept);
  }
}

Record Recorder::Take() { return std::move(record_); }

}  // namespace berth::replay
