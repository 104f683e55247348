#include "server/controllers/dispatcher.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/controllers/agent_gateway.h"
#include "server/convert/cold.h"
#include "server/validation/containers.h"
#include "storage/codec.h"
#include "storage/keys.h"
#include "support/log.h"

namespace berth {
namespace {

// A start needs nothing of the cold part but host names.
bool MayHaveHostNames(const LaunchJob& job) {
  return job.task_count > 1 && job.task_count <= size_t{kMaxNamedTasks};
}

}  // namespace

Dispatcher::Dispatcher(const Store* store, Executor* executor, Clock* clock)
    : store_(store), executor_(executor), clock_(clock), cache_(kColdCacheBytes) {}

Effect Dispatcher::OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                                 const ColdParts& cold) {
  cache_.Insert(cold);
  LaunchCapture capture(state, images_);
  for (const Event& event : events) capture.Add(event);
  std::vector<LaunchOrder> orders = capture.Take();
  if (orders.empty()) return nullptr;
  return [this, orders = std::move(orders)]() mutable { Send(std::move(orders)); };
}

void Dispatcher::Send(std::vector<LaunchOrder> orders) {
  if (orders.empty()) return;
  executor_->Run([this, orders = std::move(orders), begin = clock_->Steady()] {
    for (const LaunchOrder& order : orders) SendNow(order);
    counters_.seconds.Observe(clock_->Steady() - begin);
  });
}

// An unreadable cold part means a damaged record. Its job can never run: it is cancelled, and no
// node is blamed. A Kill is sent with the agent's default signal.
void Dispatcher::SendNow(const LaunchOrder& order) {
  static const v1::JobSpec kNone;
  const v1::JobSpec* cold = &kNone;
  const bool needs_cold = order.kind == OrderKind::kStart
                              ? MayHaveHostNames(*order.job)
                              : order.kind != OrderKind::kFreeze && order.kind != OrderKind::kThaw;
  if (needs_cold) {
    absl::StatusOr<const v1::JobSpec*> parsed = ParsedCold(order.job->cold_of);
    if (parsed.ok() && (*parsed)->groups_size() != std::ssize(order.job->group_names)) {
      parsed = absl::DataLossError("the stored command belongs to another job");
    }
    if (parsed.ok()) {
      cold = *parsed;
    } else {
      ++counters_.unreadable;
      LogError("a job cannot be launched", {{"job", order.job->name}, {"error", parsed.status()}});
      if (order.kind == OrderKind::kPrepare) {
        return gateway_->CancelJob(order.job->id, parsed.status().message());
      }
    }
  }
  if (order.kind == OrderKind::kPrefetch && !WantsPrefetch(order, *cold)) return;
  Count(order.kind);
  const absl::Duration greatest_grace =
      defaults_ == nullptr ? absl::InfiniteDuration() : defaults_->Get().greatest_kill_grace;
  gateway_->SendTo(order.node, order.epoch, ToMessage(order, *cold, greatest_grace));
}

bool Dispatcher::WantsPrefetch(const LaunchOrder& order, const v1::JobSpec& cold) const {
  const int group = static_cast<int>(order.group);
  return group < cold.groups_size() && !cold.groups(group).image().empty() &&
         cold.groups(group).image_pull_policy() != v1::IMAGE_PULL_POLICY_NEVER &&
         gateway_->TakesPrefetch(order.node);
}

void Dispatcher::Count(OrderKind kind) {
  switch (kind) {
    case OrderKind::kPrepare:
      ++counters_.prepares;
      break;
    case OrderKind::kStart:
      ++counters_.starts;
      break;
    case OrderKind::kKill:
      ++counters_.kills;
      break;
    case OrderKind::kAskCheckpoint:
      ++counters_.checkpoints;
      break;
    case OrderKind::kAskStacks:
      ++counters_.dumps;
      break;
    case OrderKind::kPrefetch:
      ++counters_.prefetches;
      break;
    case OrderKind::kFreeze:
    case OrderKind::kThaw:
      ++counters_.freezes;
      break;
  }
}

absl::StatusOr<const v1::JobSpec*> Dispatcher::ParsedCold(JobId job) {
  if (parsed_job_ == job) return &parsed_;
  absl::StatusOr<ColdPart> cold = FindCold(job);
  if (!cold.ok()) return cold.status();
  parsed_job_ = JobId{};
  parsed_.Clear();
  if (absl::Status status = ParseCold(**cold, &parsed_); !status.ok()) {
    return store_->NoteRead(std::move(status));
  }
  parsed_job_ = job;
  return &parsed_;
}

absl::StatusOr<ColdPart> Dispatcher::FindCold(JobId job) {
  if (ColdPart cached = cache_.Find(job); cached != nullptr) return cached;
  ++counters_.store_reads;
  const std::string key = JobKey(job);
  absl::StatusOr<std::string> record = store_->Read(RecordKind::kJobSpec, key);
  if (!record.ok()) return record.status();
  absl::StatusOr<std::string> cold = DecodeCold(key, *record);
  if (!cold.ok()) return store_->NoteRead(cold.status());
  return std::make_shared<const std::string>(*std::move(cold));
}

}  // namespace berth
