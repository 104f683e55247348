// Records of queues, requests and next ids.
#include <algorithm>

#include "core/base/fields.h"
#include "storage/codec.h"
#include "storage/codec_common.h"
#include "storage/keys.h"

namespace berth {
namespace codec {
namespace {

static_assert(static_cast<int>(QueueOrder::kFifoStrict) == pb::FIFO_STRICT);
static_assert(static_cast<int>(UserFairness::kDrf) == pb::USERS_DRF);
static_assert(static_cast<int>(Strategy::kBinpack) == pb::BINPACK);
static_assert(static_cast<int>(Strategy::kSpread) == pb::SPREAD);
static_assert(static_cast<int>(Strategy::kColocate) == pb::COLOCATE);

// Whoever adds a field encodes and decodes it below, and then changes the number.
static_assert(kFields<QueueSpec> == 19);
static_assert(kFields<QueueDefaults> == 3);
static_assert(kFields<StoredQueue> == 8);
static_assert(kFields<NextIds> == 4);
static_assert(kFields<FinishedRun> == 3);
static_assert(kFields<RunRequest> == 3);
static_assert(kFields<StoredRun> == 2);
static_assert(kFields<StoredRequest> == 4);

constexpr int32_t kDefaultWeight = 1;  // the meaning of absence, even if QueueSpec changes

}  // namespace

Strategy GetStrategy(pb::Strategy strategy, Reader& reader) {
  return reader.Enum<Strategy>(strategy, pb::Strategy_IsValid(strategy), "strategy");
}

void SetQueueSpec(const QueueSpec& spec, pb::QueueSpec* out) {
  out->set_name(spec.name);
  out->set_parent(spec.parent.value);
  SetAmounts(spec.limit, out->mutable_limit());
  out->set_max_jobs(spec.max_jobs);
  out->set_max_running_jobs(spec.max_running_jobs);
  SetLabels(spec.labels, out->mutable_labels());
  SetAmounts(spec.guarantee, out->mutable_guarantee());
  SetAmounts(spec.deserved, out->mutable_deserved());
  if (spec.weight != kDefaultWeight) out->set_weight(spec.weight);
  out->set_priority(spec.priority);
  out->set_keeps_borrowed(!spec.reclaimable);
  out->set_order(static_cast<pb::QueueOrder>(spec.order));
  out->set_user_fairness(static_cast<pb::UserFairness>(spec.user_fairness));
  out->set_surplus_only(spec.surplus_only);
  if (spec.slice != absl::ZeroDuration()) SetDuration(spec.slice, out->mutable_slice());
  out->set_strategy(static_cast<pb::Strategy>(spec.strategy));
  out->set_device_strategy(static_cast<pb::Strategy>(spec.device_strategy));
  out->set_max_tasks(spec.max_tasks);
  out->set_default_cpu_millis(spec.defaults.cpu_millis);
  out->set_default_memory_bytes(spec.defaults.memory_bytes);
  if (spec.defaults.walltime != absl::InfiniteDuration()) {
    SetDuration(spec.defaults.walltime, out->mutable_default_walltime());
  }
}

QueueSpec GetQueueSpec(const pb::QueueSpec& message, Reader& reader) {
  return {.name = message.name(),
          .parent = QueueId{message.parent()},
          .guarantee = GetAmounts(message.guarantee()),
          .deserved = GetAmounts(message.deserved()),
          .limit = GetAmounts(message.limit()),
          .weight = message.has_weight() ? message.weight() : kDefaultWeight,
          .priority = message.priority(),
          .reclaimable = !message.keeps_borrowed(),
          .surplus_only = message.surplus_only(),
          .slice = reader.GetDuration(message.has_slice(), message.slice(), absl::ZeroDuration(),
                                      "slice"),
          .order = reader.Enum<QueueOrder>(message.order(), pb::QueueOrder_IsValid(message.order()),
                                           "queue order"),
          .user_fairness = reader.Enum<UserFairness>(
              message.user_fairness(), pb::UserFairness_IsValid(message.user_fairness()),
              "user fairness"),
          .strategy = GetStrategy(message.strategy(), reader),
          .device_strategy = GetStrategy(message.device_strategy(), reader),
          .max_jobs = message.max_jobs(),
          .max_running_jobs = message.max_running_jobs(),
          .max_tasks = message.max_tasks(),
          .defaults = {.cpu_millis = message.default_cpu_millis(),
                       .memory_bytes = message.default_memory_bytes(),
                       .walltime = reader.GetDuration(message.has_default_walltime(),
                                                      message.default_walltime(),
                                                      absl::InfiniteDuration(), "walltime")},
          .labels = GetLabels(message.labels())};
}

}  // namespace codec

namespace pb = codec::pb;

std::string EncodeNextIds(const NextIds& ids) {
  pb::NextIds message;
  message.set_job(ids.job.value);
  message.set_node(ids.node.value);
  message.set_queue(ids.queue.value);
  message.set_hyper_node(ids.hyper_node.value);
  return message.SerializeAsString();
}

absl::StatusOr<NextIds> DecodeNextIds(absl::string_view value, std::string* unknown) {
  pb::NextIds message;
  if (absl::Status status = codec::ParseMessage(value, &message, unknown); !status.ok()) {
    return NameRecord(status, RecordKind::kMeta, kNextIdsKey);
  }
  return NextIds{.job = JobId{message.job()},
                 .node = NodeId{message.node()},
                 .queue = QueueId{message.queue()},
                 .hyper_node = HyperNodeId{std::max(message.hyper_node(), 1u)}};
}

std::string EncodeRequestMix(const RequestMix& mix) {
  pb::RequestMix message;
  codec::SetRequestMix(mix, &message);
  return message.SerializeAsString();
}

absl::StatusOr<RequestMix> DecodeRequestMix(absl::string_view value, std::string* unknown) {
  pb::RequestMix message;
  if (absl::Status status = codec::ParseMessage(value, &message, unknown); !status.ok()) {
    return NameRecord(status, RecordKind::kMeta, kRequestMixKey);
  }
  return codec::GetRequestMix(message);
}

std::string EncodeRunRecord(const FinishedRun& run) {
  pb::RunRecord message;
  message.set_user(run.user);
  message.set_walltime(run.request.walltime_s);
  message.set_devices(run.request.devices);
  message.set_cpu_millis(run.request.cpu_millis);
  message.set_run(run.run_ms);
  return message.SerializeAsString();
}

absl::StatusOr<StoredRun> DecodeRunRecord(absl::string_view key, absl::string_view value,
                                          std::string* unknown) {
  pb::RunRecord message;
  absl::Status status = codec::ParseMessage(value, &message, unknown);
  const absl::StatusOr<RunId> id = ParseRunKey(key);
  if (status.ok()) status = id.status();
  if (!status.ok()) return NameRecord(status, RecordKind::kMeta, key);
  return StoredRun{.id = *id,
                   .run = {.user = message.user(),
                           .request = {.walltime_s = message.walltime(),
                                       .devices = message.devices(),
                                       .cpu_millis = message.cpu_millis()},
                           .run_ms = message.run()}};
}

std::string EncodeQueueRecord(const StoredQueue& queue) {
  pb::QueueRecord message;
  codec::SetQueueSpec(queue.spec, message.mutable_spec());
  message.set_closed(!queue.open);
  message.set_revision(queue.revision);
  codec::SetAmounts(queue.usage, message.mutable_usage());
  if (queue.usage_charged != absl::InfinitePast()) {
    codec::SetTime(queue.usage_charged, message.mutable_usage_charged());
  }
  message.set_line(queue.line);
  message.set_longest_line(queue.longest_line);
  return message.SerializeAsString();
}

absl::StatusOr<StoredQueue> DecodeQueueRecord(absl::string_view key, absl::string_view value,
                                              std::string* unknown) {
  pb::QueueRecord message;
  absl::Status status = codec::ParseMessage(value, &message, unknown);
  absl::StatusOr<QueueId> id = ParseQueueKey(key);
  if (status.ok()) status = id.status();
  if (!status.ok()) return NameRecord(status, RecordKind::kQueue, key);
  codec::Reader reader;
  StoredQueue queue{
      .id = *id,
      .spec = codec::GetQueueSpec(message.spec(), reader),
      .open = !message.closed(),
      .usage = codec::GetAmounts(message.usage()),
      .usage_charged = reader.GetTime(message.has_usage_charged(), message.usage_charged(),
                                      absl::InfinitePast(), "usage_charged"),
      .revision = message.revision(),
      .line = message.line(),
      .longest_line = message.longest_line()};
  status = codec::Verdict(reader, RecordKind::kQueue, key);
  if (!status.ok()) return status;
  return queue;
}

std::string EncodeRequestRecord(const StoredRequest& request) {
  pb::RequestRecord message;
  message.set_fingerprint(request.fingerprint);
  if (request.time != absl::InfinitePast()) codec::SetTime(request.time, message.mutable_time());
  message.set_answer(request.answer);
  return message.SerializeAsString();
}

absl::StatusOr<StoredRequest> DecodeRequestRecord(absl::string_view key, absl::string_view value,
                                                  std::string* unknown) {
  pb::RequestRecord message;
  absl::Status status = codec::ParseMessage(value, &message, unknown);
  if (!status.ok()) return NameRecord(status, RecordKind::kRequest, key);
  codec::Reader reader;
  StoredRequest request{
      .id = std::string(key),
      .fingerprint = message.fingerprint(),
      .time = reader.GetTime(message.has_time(), message.time(), absl::InfinitePast(), "time"),
      .answer = message.answer()};
  status = codec::Verdict(reader, RecordKind::kRequest, key);
  if (!status.ok()) return status;
  return request;
}

}  // namespace berth
