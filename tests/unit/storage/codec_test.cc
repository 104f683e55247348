// Every record and event survives a round trip to disk; any other bytes are refused with a reason.
#include "storage/codec.h"

#include <google/protobuf/unknown_field_set.h>

#include <catch2/catch.hpp>
#include <limits>

#include "berth/store/v1/store.pb.h"
#include "storage/keys.h"
#include "tests/unit/storage/random_values.h"

namespace berth {
namespace {

namespace pb = store::v1;

constexpr int kRounds = 300;

std::string SerializedEvent(const Event& event, Time turn_time) {
  pb::LogEvent message;
  EncodeEvent(event, turn_time, &message);
  return message.SerializeAsString();
}

TEST_CASE("keys are ordered as their numbers") {
  CHECK(JobKey(JobId{255}) < JobKey(JobId{256}));
  CHECK(NodeKey(NodeId{1}) < NodeKey(NodeId{0x01000000}));
  CHECK(TaskRecordKey({JobId{1}, 0xffffffff}) < TaskRecordKey({JobId{2}, 0}));
  CHECK(ParseJobKey(JobKey(JobId{1})).value() == JobId{1});
  CHECK(ParseQueueKey(QueueKey(QueueId{77})).value() == QueueId{77});
  CHECK(ParseSequenceKey(SequenceKey(1ull << 63)).value() == 1ull << 63);
  CHECK(ParseTaskRecordKey(TaskRecordKey({JobId{9}, 3})).value() == TaskKey{JobId{9}, 3});
  CHECK_FALSE(ParseJobKey("short").ok());
  CHECK(PrintableKey(RecordKind::kTask, TaskRecordKey({JobId{9}, 3})) == "9/3");
  CHECK(PrintableKey(RecordKind::kRequest, "submit-1") == "submit-1");
  CHECK(PrintableKey(RecordKind::kJobSpec, "abc") == "0x616263");
}

TEST_CASE("queue records round-trip") {
  RandomValues random(1);
  for (int i = 0; i < kRounds; ++i) {
    const QueueSpec spec = random.AnyQueueSpec();
    const bool open = random.Coin();
    const std::vector<NamedAmount> usage = random.Amounts();
    const Time charged = random.AnyTime();
    const std::string value = EncodeQueueRecord({.id = QueueId{7},
                                                 .spec = spec,
                                                 .open = open,
                                                 .usage = usage,
                                                 .usage_charged = charged,
                                                 .revision = 12,
                                                 .line = 1'000 * i,
                                                 .longest_line = 10 * i});
    const auto back = DecodeQueueRecord(QueueKey(QueueId{7}), value, nullptr);
    REQUIRE(back.ok());
    CHECK(back->id == QueueId{7});
    CHECK(back->spec == spec);
    CHECK(back->open == open);
    CHECK(back->usage == usage);
    CHECK(back->usage_charged == charged);
    CHECK(back->revision == 12);
    CHECK(back->line == 1'000 * i);
    CHECK(back->longest_line == 10 * i);
    CHECK(EncodeQueueRecord(*back) == value);
  }
}

TEST_CASE("node records round-trip") {
  RandomValues random(2);
  for (int i = 0; i < kRounds; ++i) {
    const NodeSpec spec = random.AnyNodeSpec();
    const NodeStatus status = random.AnyNodeStatus();
    const std::vector<HyperNodeId> domains =
        random.List([&] { return HyperNodeId{random.Uint32()}; });
    const std::vector<ImageId> images = random.Ids<ImageId>();
    const std::string value = EncodeNodeRecord(spec, status, domains, images, 1ull << 60);
    const auto back = DecodeNodeRecord(NodeKey(NodeId{3}), value, nullptr);
    REQUIRE(back.ok());
    CHECK(back->id == NodeId{3});
    CHECK(back->spec == spec);
    CHECK(back->status == status);
    CHECK(back->domains == domains);
    CHECK(back->images == images);
    CHECK(back->revision == 1ull << 60);
    CHECK(EncodeNodeRecord(back->spec, back->status, back->domains, back->images, back->revision) ==
          value);
  }
}

TEST_CASE("HyperNode records round-trip") {
  RandomValues random(8);
  for (int i = 0; i < kRounds; ++i) {
    const HyperNodeSpec spec = random.AnyHyperNodeSpec();
    const std::string value = EncodeHyperNodeRecord(spec, 17);
    const auto back = DecodeHyperNodeRecord(HyperNodeKey(HyperNodeId{4}), value, nullptr);
    REQUIRE(back.ok());
    CHECK(back->id == HyperNodeId{4});
    CHECK(back->spec == spec);
    CHECK(back->revision == 17);
    CHECK(EncodeHyperNodeRecord(back->spec, back->revision) == value);
  }
}

TEST_CASE("job spec records round-trip, followed by the cold part") {
  RandomValues random(3);
  for (int i = 0; i < kRounds; ++i) {
    const JobSpec spec = random.AnyJobSpec();
    const Time submit = random.AnyTime();
    const std::string cold = random.Text();
    const RunPrediction prediction = random.AnyPrediction();
    const LinePlace line = random.AnyLinePlace();
    const std::string value = EncodeJobSpecRecord(spec, submit, 5, prediction, line, cold);
    const auto back = DecodeJobSpecRecord(JobKey(JobId{8}), value);
    REQUIRE(back.ok());
    CHECK(back->id == JobId{8});
    CHECK(back->spec == spec);
    CHECK(back->submit == submit);
    CHECK(back->revision == 5);
    CHECK(back->prediction == prediction);
    CHECK(back->line == line);
    CHECK(DecodeCold(JobKey(JobId{8}), value).value() == cold);
    CHECK(EncodeJobSpecRecord(back->spec, back->submit, 5, back->prediction, back->line, cold) ==
          value);
    const std::string plain = EncodeJobSpecRecord(spec, submit, 5, prediction, line, "");
    CHECK(value.substr(0, plain.size()) == plain);
  }
}

TEST_CASE("finished runs round-trip, and sort by number") {
  RandomValues random(31);
  for (int i = 0; i < kRounds; ++i) {
    const FinishedRun run = random.AnyRun();
    const auto back = DecodeRunRecord(RunKey(RunId{300}), EncodeRunRecord(run), nullptr);
    REQUIRE(back.ok());
    CHECK(back->id == RunId{300});
    CHECK(back->run == run);
  }
  CHECK(RunKey(RunId{255}) < RunKey(RunId{256}));
  CHECK(absl::IsInvalidArgument(ParseRunKey("run/1").status()));
  CHECK(absl::IsInvalidArgument(ParseRunKey(kNextIdsKey).status()));
}

TEST_CASE("job status records round-trip") {
  RandomValues random(4);
  for (int i = 0; i < kRounds; ++i) {
    const JobStatus status = random.AnyJobStatus();
    const auto labels = random.Labels();
    const int32_t priority = random.Int32();
    const Reservation reservation = random.AnyReservation();
    std::optional<Duration> walltime;
    if (i % 3 == 1) walltime = absl::Seconds(i);
    if (i % 3 == 2) walltime = absl::InfiniteDuration();
    const std::string value =
        EncodeJobStatusRecord(status, priority, labels, reservation, 6, walltime);
    const auto back = DecodeJobStatusRecord(JobKey(JobId{8}), value, nullptr);
    REQUIRE(back.ok());
    CHECK(back->status == status);
    CHECK(back->labels == labels);
    CHECK(back->priority == priority);
    CHECK(back->reservation == reservation);
    CHECK(back->walltime == walltime);
    CHECK(back->revision == 6);
  }
}

TEST_CASE("task records round-trip") {
  RandomValues random(5);
  for (int i = 0; i < kRounds; ++i) {
    const Task task = random.AnyTask();
    const std::string message = random.Text();
    const TaskKey key{JobId{4}, 2};
    const auto back =
        DecodeTaskRecord(TaskRecordKey(key), EncodeTaskRecord(task, message), nullptr);
    REQUIRE(back.ok());
    CHECK(back->key == key);
    CHECK(back->task == task);
    CHECK(back->message == message);
  }
}

TEST_CASE("request records and next ids round-trip") {
  const StoredRequest request{"id-1", std::string("\0\xff", 2), absl::FromUnixNanos(17), "answer"};
  const auto back = DecodeRequestRecord("id-1", EncodeRequestRecord(request), nullptr);
  REQUIRE(back.ok());
  CHECK(back->id == "id-1");
  CHECK(back->fingerprint == request.fingerprint);
  CHECK(back->time == request.time);
  CHECK(back->answer == "answer");

  const NextIds ids{JobId{1ull << 40}, NodeId{2}, QueueId{3}, HyperNodeId{4}};
  CHECK(DecodeNextIds(EncodeNextIds(ids), nullptr).value() == ids);
}

TEST_CASE("every kind of event round-trips") {
  RandomValues random(6);
  constexpr size_t kKinds = std::variant_size_v<AnyFact>;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    for (int i = 0; i < 100; ++i) {
      const Time turn_time = random.AnyTime();
      const Event event{random.Coin() ? turn_time : random.AnyTime(), random.AnyBody(kind)};
      REQUIRE(event.body.index() == kind);
      pb::LogEvent message;
      EncodeEvent(event, turn_time, &message);
      const auto back = DecodeEvent(message, turn_time);
      REQUIRE(back.ok());
      CHECK(back->time == event.time);
      CHECK(back->body.index() == kind);
      CHECK(SerializedEvent(*back, turn_time) == message.SerializeAsString());
    }
  }
}

TEST_CASE("events keep their values") {
  // The test above compares encodings. This one compares values, so that a field missing in both
  // directions is found.
  RandomValues random(7);
  for (int i = 0; i < kRounds; ++i) {
    const Time now = absl::UnixEpoch();
    const auto round_trip = [&](const EventBody& body) {
      pb::LogEvent message;
      EncodeEvent({now, body}, now, &message);
      return DecodeEvent(message, now).value().body;
    };
    const auto report = std::get<TaskReported>(random.AnyBody(15));
    const auto report_back = std::get<TaskReported>(round_trip(report));
    CHECK(report_back.task == report.task);
    CHECK(report_back.attempt == report.attempt);
    CHECK(report_back.state == report.state);
    CHECK(report_back.exit_code == report.exit_code);
    CHECK(report_back.exit_signal == report.exit_signal);
    CHECK(report_back.cause == report.cause);
    CHECK(report_back.port == report.port);
    CHECK(report_back.message == report.message);
    CHECK(report_back.own_fault == report.own_fault);
    CHECK(report_back.trust_at_running == report.trust_at_running);
    CHECK(report_back.devices_lent == report.devices_lent);
    const auto silenced = std::get<NodeSilenced>(random.AnyBody(5));
    CHECK(std::get<NodeSilenced>(round_trip(silenced)).ends_forced == silenced.ends_forced);
    const auto bound = std::get<TasksBound>(random.AnyBody(16));
    const auto bound_back = std::get<TasksBound>(round_trip(bound));
    CHECK(bound_back.gang == bound.gang);
    CHECK(bound_back.placements == bound.placements);
    const auto released = std::get<TasksReleased>(random.AnyBody(18));
    const auto released_back = std::get<TasksReleased>(round_trip(released));
    CHECK(released_back.tasks == released.tasks);
    CHECK(released_back.requeue == released.requeue);
    CHECK(released_back.reason == released.reason);
    const auto node = std::get<NodeRegistered>(random.AnyBody(4));
    const auto node_back = std::get<NodeRegistered>(round_trip(node));
    CHECK(node_back.spec == node.spec);
    CHECK(node_back.epoch == node.epoch);
    CHECK(node_back.agent_id == node.agent_id);
    CHECK(node_back.boot_id == node.boot_id);
    CHECK(node_back.agent_version == node.agent_version);
    const auto refused = std::get<NodeRefused>(random.AnyBody(8));
    CHECK(std::get<NodeRefused>(round_trip(refused)).backoff_until == refused.backoff_until);
    const auto submitted = std::get<JobSubmitted>(random.AnyBody(10));
    CHECK(std::get<JobSubmitted>(round_trip(submitted)).spec == submitted.spec);
    const auto changed = std::get<JobStatusChanged>(random.AnyBody(20));
    CHECK(std::get<JobStatusChanged>(round_trip(changed)).status == changed.status);
    const auto domain = std::get<HyperNodeChanged>(random.AnyBody(25));
    CHECK(std::get<HyperNodeChanged>(round_trip(domain)).spec == domain.spec);
    const auto joined = std::get<NodesJoined>(random.AnyBody(27));
    CHECK(std::get<NodesJoined>(round_trip(joined)).nodes == joined.nodes);
    const auto left = std::get<NodesLeft>(random.AnyBody(28));
    CHECK(std::get<NodesLeft>(round_trip(left)).nodes == left.nodes);
    const auto mix = std::get<RequestMixChanged>(random.AnyBody(29));
    CHECK(std::get<RequestMixChanged>(round_trip(mix)).mix == mix.mix);
    const auto access = std::get<AccessChanged>(random.AnyBody(34));
    CHECK(std::get<AccessChanged>(round_trip(access)).change == access.change);
    const auto classes = std::get<PriorityClassesChanged>(random.AnyBody(35));
    CHECK(std::get<PriorityClassesChanged>(round_trip(classes)).change == classes.change);
    CHECK(DecodePriorityClasses(EncodePriorityClasses(classes.change), nullptr).value() ==
          classes.change);
    const auto images = std::get<NodeImagesChanged>(random.AnyBody(36));
    const auto images_back = std::get<NodeImagesChanged>(round_trip(images));
    CHECK(images_back.id == images.id);
    CHECK(images_back.gained == images.gained);
    CHECK(images_back.lost == images.lost);
    const AccessChange rules = random.AnyAccessChange();
    CHECK(DecodeAccessRecord(EncodeAccessRecord(rules), nullptr).value() == rules);
    const auto recorded = std::get<JobRunRecorded>(random.AnyBody(30));
    CHECK(std::get<JobRunRecorded>(round_trip(recorded)).job == recorded.job);
  }
}

TEST_CASE("events of older versions are folded by the older rules") {
  const Time now = absl::UnixEpoch();
  pb::LogEvent message;
  message.mutable_node_silenced()->set_id(1);
  CHECK_FALSE(std::get<NodeSilenced>(DecodeEvent(message, now).value().body).ends_forced);
  message.mutable_task_reported()->set_state(pb::REPORT_RUNNING);
  CHECK_FALSE(std::get<TaskReported>(DecodeEvent(message, now).value().body).trust_at_running);
}

TEST_CASE("records that no version wrote are refused, naming kind, key and reason") {
  pb::JobSpecRecord job;
  job.mutable_spec()->set_on_node_loss(static_cast<pb::NodeLossPolicy>(9));
  auto spec = DecodeJobSpecRecord(JobKey(JobId{42}), job.SerializeAsString());
  CHECK(absl::IsDataLoss(spec.status()));
  CHECK(spec.status().message() == "job_spec 42: unknown node loss policy 9");

  pb::TaskRecord task;
  task.set_port(70000);
  const std::string key = TaskRecordKey({JobId{1}, 2});
  CHECK(DecodeTaskRecord(key, task.SerializeAsString(), nullptr).status().message() ==
        "task 1/2: unknown port 70000");
  task.Clear();
  for (int i = 0; i < 3; ++i) task.add_devices(1);
  CHECK(DecodeTaskRecord(key, task.SerializeAsString(), nullptr).status().message() ==
        "task 1/2: devices has 3 words");

  pb::NodeRecord node;
  node.mutable_status()->set_refused_jobs(std::numeric_limits<int32_t>::max());
  CHECK(
      DecodeNodeRecord(NodeKey(NodeId{5}), node.SerializeAsString(), nullptr).status().message() ==
      "node 5: unknown refused jobs 2147483647");
  CHECK(DecodeNodeRecord(NodeKey(NodeId{5}), "\xff\xff", nullptr).status().message() ==
        "node 5: not a valid record");
  pb::HyperNodeRecord domain;
  domain.mutable_spec()->add_members()->set_match(static_cast<pb::MemberMatch>(7));
  CHECK(DecodeHyperNodeRecord(HyperNodeKey(HyperNodeId{5}), domain.SerializeAsString(), nullptr)
            .status()
            .message() == "hyper_node 5: unknown match of member 7");
  CHECK(DecodeQueueRecord("xyz", "", nullptr).status().message() ==
        "queue 0x78797a: the key has 3 bytes instead of 4");

  pb::LogTurn turn;
  turn.set_sequence(6);
  turn.add_events()->set_job_name("of a newer kind");
  CHECK(DecodeTurn(turn.SerializeAsString()).status().message() ==
        "log 6: an event of unknown kind");
}

// Decodes the value as every type. The results do not matter; it must not crash (run under ASan and
// UBSan).
void DecodeAsAll(absl::string_view value) {
  std::string unknown;
  (void)DecodeNextIds(value, &unknown);
  (void)DecodeQueueRecord(QueueKey(QueueId{1}), value, &unknown);
  (void)DecodeNodeRecord(NodeKey(NodeId{1}), value, &unknown);
  (void)DecodeJobSpecRecord(JobKey(JobId{1}), value);
  (void)DecodeCold(JobKey(JobId{1}), value);
  (void)DecodeJobStatusRecord(JobKey(JobId{1}), value, &unknown);
  (void)DecodeTaskRecord(TaskRecordKey({JobId{1}, 1}), value, &unknown);
  (void)DecodeRequestRecord("r", value, &unknown);
  (void)DecodeRunRecord(RunKey(RunId{1}), value, &unknown);
  (void)DecodeTurn(value);
}

TEST_CASE("garbage never crashes the decoder") {
  RandomValues random(8);
  for (int i = 0; i < 2000; ++i) {
    std::string value;
    switch (random.Below(3)) {
      case 0:
        for (uint64_t n = random.Below(64); n > 0; --n) {
          value.push_back(static_cast<char>(random.Below(256)));
        }
        break;
      case 1:
        value = EncodeJobSpecRecord(random.AnyJobSpec(), random.AnyTime(), 1,
                                    random.AnyPrediction(), random.AnyLinePlace(), random.Text());
        break;
      default: {
        pb::LogTurn turn;
        EncodeEvent({random.AnyTime(), random.AnyBody(random.Below(21))}, random.AnyTime(),
                    turn.add_events());
        value = turn.SerializeAsString();
      }
    }
    for (uint64_t flips = random.Below(4); flips > 0 && !value.empty(); --flips) {
      value[random.Below(value.size())] ^= static_cast<char>(1 << random.Below(8));
    }
    DecodeAsAll(value);
    DecodeAsAll(value.substr(0, random.Below(value.size() + 1)));
  }
}

const google::protobuf::UnknownFieldSet& UnknownOf(const google::protobuf::Message& message) {
  return message.GetReflection()->GetUnknownFields(message);
}

TEST_CASE("fields of a newer version survive a rewrite by this one") {
  // A later version added field 100 to the record and field 101 inside the node's status.
  pb::NodeRecord newer;
  newer.mutable_spec()->set_name("n1");
  newer.mutable_status()
      ->GetReflection()
      ->MutableUnknownFields(newer.mutable_status())
      ->AddVarint(101, 7);
  newer.GetReflection()->MutableUnknownFields(&newer)->AddLengthDelimited(100, "added");

  std::string unknown;
  const auto node = DecodeNodeRecord(NodeKey(NodeId{1}), newer.SerializeAsString(), &unknown);
  REQUIRE(node.ok());
  CHECK_FALSE(unknown.empty());
  const std::string rewritten =
      EncodeNodeRecord(node->spec, node->status, node->domains, node->images, 9) + unknown;

  pb::NodeRecord again;
  REQUIRE(again.ParseFromString(rewritten));
  CHECK(again.revision() == 9);
  CHECK(again.spec().name() == "n1");
  REQUIRE(UnknownOf(again).field_count() == 1);
  CHECK(UnknownOf(again).field(0).length_delimited() == "added");
  REQUIRE(UnknownOf(again.status()).field_count() == 1);
  CHECK(UnknownOf(again.status()).field(0).varint() == 7);
}

}  // namespace
}  // namespace berth
