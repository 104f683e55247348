// Records of queues, requests and next ids.
#include "storage/codec.h"
#include "storage/codec_common.h"
#include "storage/keys.h"

namespace berth {
namespace codec {

void SetQueueSpec(const QueueSpec& spec, pb::QueueSpec* out) {
  out->set_name(spec.name);
  out->set_parent(spec.parent.value);
  SetAmounts(spec.limit, out->mutable_limit());
  out->set_max_jobs(spec.max_jobs);
  out->set_max_running_jobs(spec.max_running_jobs);
  SetLabels(spec.labels, out->mutable_labels());
}

QueueSpec GetQueueSpec(const pb::QueueSpec& message) {
  return {.name = message.name(),
          .parent = QueueId{message.parent()},
          .limit = GetAmounts(message.limit()),
          .max_jobs = message.max_jobs(),
          .max_running_jobs = message.max_running_jobs(),
          .labels = GetLabels(message.labels())};
}

}  // namespace codec

namespace pb = codec::pb;

std::string EncodeNextIds(const NextIds& ids) {
  pb::NextIds message;
  message.set_job(ids.job.value);
  message.set_node(ids.node.value);
  message.set_queue(ids.queue.value);
  return message.SerializeAsString();
}

absl::StatusOr<NextIds> DecodeNextIds(absl::string_view value, std::string* unknown) {
  pb::NextIds message;
  if (absl::Status status = codec::ParseMessage(value, &message, unknown); !status.ok()) {
    return NameRecord(status, RecordKind::kMeta, kNextIdsKey);
  }
  return NextIds{.job = JobId{message.job()},
                 .node = NodeId{message.node()},
                 .queue = QueueId{message.queue()}};
}

std::string EncodeQueueRecord(const QueueSpec& spec, bool open, uint64_t revision) {
  pb::QueueRecord message;
  codec::SetQueueSpec(spec, message.mutable_spec());
  message.set_closed(!open);
  message.set_revision(revision);
  return message.SerializeAsString();
}

absl::StatusOr<StoredQueue> DecodeQueueRecord(absl::string_view key, absl::string_view value,
                                              std::string* unknown) {
  pb::QueueRecord message;
  absl::Status status = codec::ParseMessage(value, &message, unknown);
  absl::StatusOr<QueueId> id = ParseQueueKey(key);
  if (status.ok()) status = id.status();
  if (!status.ok()) return NameRecord(status, RecordKind::kQueue, key);
  return StoredQueue{.id = *id,
                     .spec = codec::GetQueueSpec(message.spec()),
                     .open = !message.closed(),
                     .revision = message.revision()};
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
