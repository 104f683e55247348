// Each field of each record and event survives the way to disk and back.
#include <catch2/catch.hpp>
#include <variant>

#include "berth/store/v1/store.pb.h"
#include "storage/codec.h"
#include "storage/keys.h"
#include "tests/unit/core/testing/changes.h"

namespace berth {
namespace {

// The smallest value whose fields may all change independently.
template <class T>
T Sample() {
  return {};
}
template <>
NodeSpec Sample() {
  NodeSpec spec;
  spec.devices.resize(2);
  spec.topology = {.links = {{}}, .between = "\1", .numa_nodes = {}};
  return spec;
}
template <>
Reservation Sample() {
  Reservation reservation;
  reservation.places.resize(1);  // without places there is no reservation
  return reservation;
}
template <>
Task Sample() {
  Task task;
  task.moves = true;  // without it there is no next place
  return task;
}
template <>
StoredNode Sample() {
  StoredNode node;
  node.spec = Sample<NodeSpec>();
  return node;
}
template <>
StoredJob Sample() {
  StoredJob job;
  job.prediction.expected_s = 1;  // without it the prediction is unknown
  return job;
}
template <>
StoredJobStatus Sample() {
  StoredJobStatus status;
  status.reservation = Sample<Reservation>();
  return status;
}
template <>
StoredTask Sample() {
  return {.key = {}, .task = Sample<Task>(), .message = {}};
}
template <>
NodeRegistered Sample() {
  NodeRegistered event;
  event.spec = Sample<NodeSpec>();
  return event;
}
template <>
JobReserved Sample() {
  return {.job = {}, .reservation = Sample<Reservation>()};
}

// `again` stores and loads a value.
template <class T, class Again>
void CheckEveryField(const Again& again) {
  T value = Sample<T>();
  int change = 0;
  ForEachChange(value, [&] {
    INFO("change " << ++change);
    const absl::StatusOr<T> back = again(value);
    REQUIRE(back.ok());
    CHECK(FieldsOf(*back) == FieldsOf(value));
  });
  CHECK(change > 0);
}

TEST_CASE("every field of every record is stored") {
  CheckEveryField<StoredQueue>([](const StoredQueue& queue) {
    return DecodeQueueRecord(QueueKey(queue.id), EncodeQueueRecord(queue), nullptr);
  });
  CheckEveryField<StoredNode>([](const StoredNode& node) {
    const std::string value =
        EncodeNodeRecord(node.spec, node.status, node.domains, node.images, node.revision);
    return DecodeNodeRecord(NodeKey(node.id), value, nullptr);
  });
  CheckEveryField<StoredHyperNode>([](const StoredHyperNode& domain) {
    const std::string value = EncodeHyperNodeRecord(domain.spec, domain.revision);
    return DecodeHyperNodeRecord(HyperNodeKey(domain.id), value, nullptr);
  });
  CheckEveryField<StoredJob>([](const StoredJob& job) {
    const std::string value =
        EncodeJobSpecRecord(job.spec, job.submit, job.revision, job.prediction, job.line, "");
    return DecodeJobSpecRecord(JobKey(job.id), value);
  });
  CheckEveryField<StoredJobStatus>([](const StoredJobStatus& job) {
    const std::string value = EncodeJobStatusRecord(job.status, job.priority, job.labels,
                                                    job.reservation, job.revision, job.walltime);
    return DecodeJobStatusRecord(JobKey(job.id), value, nullptr);
  });
  CheckEveryField<StoredTask>([](const StoredTask& task) {
    const std::string value = EncodeTaskRecord(task.task, task.message);
    return DecodeTaskRecord(TaskRecordKey(task.key), value, nullptr);
  });
  CheckEveryField<StoredRun>([](const StoredRun& run) {
    return DecodeRunRecord(RunKey(run.id), EncodeRunRecord(run.run), nullptr);
  });
  CheckEveryField<StoredRequest>([](const StoredRequest& request) {
    return DecodeRequestRecord(request.id, EncodeRequestRecord(request), nullptr);
  });
  CheckEveryField<AccessChange>([](const AccessChange& rules) {
    return DecodeAccessRecord(EncodeAccessRecord(rules), nullptr);
  });
  CheckEveryField<PriorityClassChange>([](const PriorityClassChange& classes) {
    return DecodePriorityClasses(EncodePriorityClasses(classes), nullptr);
  });
  CheckEveryField<NextIds>(
      [](const NextIds& ids) { return DecodeNextIds(EncodeNextIds(ids), nullptr); });
}

// In a mix, Request::memory_mib is 0 by definition, and not stored.
RequestMix Storable(RequestMix mix) {
  for (RequestType& type : mix.types) type.request.memory_mib = 0;
  return mix;
}

TEST_CASE("every field of the request mix is stored") {
  RequestMix mix;
  ForEachChange(mix, [&] {
    const auto back = DecodeRequestMix(EncodeRequestMix(mix), nullptr);
    REQUIRE(back.ok());
    CHECK(*back == Storable(mix));
  });
}

template <size_t kKind>
void CheckEveryFieldOfEvent() {
  using Body = std::variant_alternative_t<kKind, AnyFact>;
  INFO("event " << kKind);
  if constexpr (!std::is_same_v<Body, RequestMixChanged>) {
    CheckEveryField<Body>([](const Body& body) -> absl::StatusOr<Body> {
      store::v1::LogEvent message;
      EncodeEvent(Event{absl::UnixEpoch(), body}, absl::UnixEpoch(), &message);
      const absl::StatusOr<Event> back = DecodeEvent(message, absl::UnixEpoch());
      if (!back.ok()) return back.status();
      return std::get<Body>(back->body);
    });
  }
}

TEST_CASE("every field of every event is stored") {
  []<size_t... kKinds>(std::index_sequence<kKinds...>) { (CheckEveryFieldOfEvent<kKinds>(), ...); }
  (std::make_index_sequence<std::variant_size_v<AnyFact>>());
}

// Found by the tests above: such a topology was stored as none.
TEST_CASE("links between no devices are stored") {
  NodeSpec spec;
  spec.topology.links.push_back({.link = LinkClass::kNvlink});
  const std::string value = EncodeNodeRecord(spec, {}, {}, {}, 1);
  const auto back = DecodeNodeRecord(NodeKey(NodeId{1}), value, nullptr);
  REQUIRE(back.ok());
  CHECK(back->spec == spec);
}

}  // namespace
}  // namespace berth
