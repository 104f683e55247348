// State is the fold of the events, and loading the records gives the same state: random histories.
#include "storage/load.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "berth/store/v1/store.pb.h"
#include "core/model/apply.h"
#include "core/model/state_editor.h"
#include "storage/fsck.h"
#include "storage/memory/memory_store.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "support/log.h"
#include "tests/unit/storage/random_cluster.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

const bool kQuiet = StartLog("error", "").ok();

uint64_t FoldedFingerprint(const Store& store) {
  ClusterState state;
  uint64_t last = 0;
  for (auto page = store.ReadLog(0, 100); page.ok() && !page->empty();
       page = store.ReadLog(last, 100)) {
    for (const LogEntry& entry : *page) {
      const auto turn = DecodeTurn(entry.turn);
      REQUIRE(turn.ok());
      CHECK(turn->sequence == entry.sequence);
      for (const Event& event : turn->events) REQUIRE(Apply(state, event).ok());
      state.StampDirty(entry.sequence);
      state.TakeDirty();
      last = entry.sequence;
    }
  }
  CHECK(last == store.LastSequence());
  return Fingerprint(state);
}

uint64_t LoadedFingerprint(Store& store) {
  ClusterState state;
  const auto summary = LoadState(
      store, state, [](StoredRequest) {}, nullptr);
  INFO(summary.status());
  REQUIRE(summary.ok());
  const absl::Status consistent = CheckConsistency(state);
  INFO(consistent);
  CHECK(consistent.ok());
  return Fingerprint(state);
}

void Run(RandomCluster& cluster, Store& store, int turns) {
  for (int i = 0; i < turns; ++i) {
    const auto batch = cluster.Turn(store.LastSequence() + 1, 8);
    if (batch.has_value()) REQUIRE(store.Append({&*batch}).ok());
  }
}

TEST_CASE("loading equals folding equals the live state") {
  std::array<int, std::variant_size_v<AnyFact>> accepted{};
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    INFO("seed " << seed);
    MemoryStore store;
    RandomCluster cluster(seed);
    for (int step = 0; step < 8; ++step) {
      Run(cluster, store, 30);
      const uint64_t live = Fingerprint(cluster.state());
      REQUIRE(LoadedFingerprint(store) == live);
      REQUIRE(FoldedFingerprint(store) == live);
    }
    for (size_t i = 0; i < accepted.size(); ++i) accepted[i] += cluster.accepted()[i];
  }
  for (size_t i = 0; i < accepted.size(); ++i) {
    INFO("event kind " << i);
    CHECK(accepted[i] >= 5);
  }
}

TEST_CASE("a restart in the middle changes nothing") {
  TempDirectory directory;
  RocksDbOptions options;
  options.directory = directory / "a";
  auto store = RocksDbStore::Open(options).value();
  RandomCluster cluster(99);
  for (int i = 0; i < 5; ++i) {
    Run(cluster, *store, 20);
    store.reset();
    store = RocksDbStore::Open(options).value();
    CHECK(LoadedFingerprint(*store) == Fingerprint(cluster.state()));
  }
  CHECK(FoldedFingerprint(*store) == Fingerprint(cluster.state()));
}

// ---- Bases

struct BaseWorld {
  explicit BaseWorld(uint64_t seed) : cluster(seed) {
    RocksDbOptions options;
    options.directory = path;
    store = RocksDbStore::Open(options).value();
    Run(cluster, *store, 60);
    base = store->KeepBase().value();
    Run(cluster, *store, 60);
  }
  std::string BaseFile() const {
    std::string digits = std::to_string(base);
    digits.insert(0, 20 - digits.size(), '0');
    return path + "/bases/" + digits + ".sst";
  }
  absl::Status Check(std::string* text) {
    store.reset();
    std::ostringstream report;
    absl::Status status = Fsck(path, report);
    *text = report.str();
    return status;
  }

  TempDirectory directory;
  const std::string path = directory / "a";
  RandomCluster cluster;
  std::unique_ptr<RocksDbStore> store;
  uint64_t base = 0;
};

TEST_CASE("the log folds from a base like from the beginning") {
  BaseWorld world(7);
  ClusterState whole;
  CHECK(LoadEarliest(*world.store, whole).value() == 0);
  CHECK(Fingerprint(whole) == Fingerprint(ClusterState{}));

  REQUIRE(world.store->TrimLog(world.base + 3).ok());
  ClusterState state;
  REQUIRE(LoadEarliest(*world.store, state).value() == world.base);
  const auto page = world.store->ReadLog(world.base, 10'000);
  REQUIRE(page.ok());
  for (const LogEntry& entry : *page) {
    const auto turn = DecodeTurn(entry.turn);
    REQUIRE(turn.ok());
    for (const Event& event : turn->events) REQUIRE(Apply(state, event).ok());
    state.StampDirty(entry.sequence);
    state.TakeDirty();
  }
  CHECK(Fingerprint(state) == Fingerprint(world.cluster.state()));

  std::string text;
  REQUIRE(world.Check(&text).ok());
  CHECK_THAT(text, Contains(absl::StrCat("the log's events after batch ", world.base,
                                         " give the same state")));
}

TEST_CASE("a base that is damaged or of another store is detected") {
  BaseWorld world(8);
  REQUIRE(world.store->TrimLog(world.base + 3).ok());
  std::string text;
  SECTION("a flipped byte") {
    std::fstream file(world.BaseFile(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(200);
    const char byte = static_cast<char>(file.get() ^ 0x40);
    file.seekp(200);
    file.put(byte);
    file.close();
    CHECK(absl::IsDataLoss(world.Check(&text)));
  }
  SECTION("from another store") {
    BaseWorld other(9);
    while (other.base != world.base) {  // bring both to the same batch
      BaseWorld& behind = other.base < world.base ? other : world;
      const auto batch = behind.cluster.Turn(behind.store->LastSequence() + 1, 8);
      if (batch.has_value()) REQUIRE(behind.store->Append({&*batch}).ok());
      behind.base = behind.store->KeepBase().value();
    }
    Run(world.cluster, *world.store, 3);
    REQUIRE(world.store->TrimLog(world.base).ok());
    std::filesystem::copy_file(other.BaseFile(), world.BaseFile(),
                               std::filesystem::copy_options::overwrite_existing);
    CHECK(absl::IsDataLoss(world.Check(&text)));
    CHECK_THAT(text, Contains("the log does not follow from it"));
  }
}

// ---- Written records

JobSpec SmallJob(const std::string& name, QueueId queue) {
  JobSpec spec;
  spec.name = name;
  spec.queue = queue;
  spec.min_available = 1;
  GroupSpec& group = spec.groups.emplace_back();
  group.name = "w";
  group.shape.cpu_millis = 1000;
  return spec;
}

struct World {
  ClusterState state;
  TurnRecorder recorder{state};
  Time now = absl::FromUnixSeconds(1'795'000'000);
  uint64_t sequence = 0;

  World() {
    Begin();
    QueueSpec queue;
    queue.name = "main";
    Must(QueueCreated{QueueId{1}, queue});
    NodeSpec node;
    node.name = "n1";
    node.cpu_millis = 64'000;
    node.memory_bytes = int64_t{1} << 36;
    Must(NodeRegistered{NodeId{1}, node, 1, "a", "b", "v"});
    recorder.Finish();
  }
  void Begin() { recorder.Begin(++sequence, now); }
  void Must(EventBody body) {
    const absl::Status status = recorder.Apply({now, std::move(body)});
    INFO(status);
    REQUIRE(status.ok());
  }
  // "kind key", with "-" before deletions.
  static std::vector<std::string> Names(const Batch& batch) {
    std::vector<std::string> names;
    for (const Record& record : batch.records) {
      names.push_back(absl::StrCat(record.value.has_value() ? "" : "-", RecordKindName(record.kind),
                                   " ", PrintableKey(record.kind, record.key)));
    }
    return names;
  }
};

TEST_CASE("a submitted job costs one record, and one of its queue, until something happens to it") {
  World world;
  world.Begin();
  world.Must(JobSubmitted{JobId{1}, SmallJob("a", QueueId{1})});
  world.recorder.PutCold(JobId{1}, "cold a");
  world.Must(JobSubmitted{JobId{2}, SmallJob("b", QueueId{1})});
  const Batch submitted = world.recorder.Finish().value();
  CHECK(World::Names(submitted) ==
        std::vector<std::string>{"job_spec 1", "job_spec 2", "queue 1", "meta next_ids"});
  CHECK(DecodeCold(JobKey(JobId{1}), *submitted.records[0].value).value() == "cold a");
  CHECK(DecodeCold(JobKey(JobId{2}), *submitted.records[1].value).value().empty());

  world.Begin();
  world.Must(TasksBound{JobId{1}, true, {{0, NodeId{1}, {}}}});
  CHECK(World::Names(world.recorder.Finish().value()) ==
        std::vector<std::string>{"job_status 1", "task 1/0"});

  world.Begin();
  world.Must(JobCancelled{JobId{2}, "no longer"});
  JobStatus cancelled = world.state.jobs().At(JobId{2}).status;
  cancelled.state = JobState::kCancelled;
  world.Must(JobStatusChanged{JobId{2}, cancelled});
  world.Must(JobDeleted{JobId{2}});
  CHECK(World::Names(world.recorder.Finish().value()) ==
        std::vector<std::string>{"-job_spec 2", "-job_status 2"});  // its task never had a record
}

TEST_CASE("a job that changes in the turn that submits it is written as changed") {
  World world;
  MemoryStore store;
  world.Begin();
  world.Must(JobSubmitted{JobId{1}, SmallJob("a", QueueId{1})});
  world.Must(JobUpdated{JobId{1}, 7, {{"k", "v"}}});
  world.Must(JobSubmitted{JobId{2}, SmallJob("b", QueueId{1})});
  world.Must(TasksBound{JobId{2}, true, {{0, NodeId{1}, {}}}});
  CHECK(World::Names(world.recorder.Finish().value()) ==
        std::vector<std::string>{"job_spec 1", "job_spec 2", "queue 1", "job_status 1",
                                 "job_status 2", "task 2/0", "meta next_ids"});
}

TEST_CASE("a usage charge writes only changed queues, and their revisions stay") {
  World world;
  world.Begin();
  world.Must(JobSubmitted{JobId{1}, SmallJob("a", QueueId{1})});
  QueueSpec idle;
  idle.name = "idle";
  world.Must(QueueCreated{QueueId{2}, idle});
  world.Must(TasksBound{JobId{1}, true, {{0, NodeId{1}, {}}}});
  world.recorder.Finish();
  const uint64_t before = world.state.queues().At(QueueId{1}).revision;
  world.Begin();
  world.Must(UsageCharged{absl::Seconds(10), absl::Minutes(1)});
  const Batch batch = world.recorder.Finish().value();
  CHECK(World::Names(batch) == std::vector<std::string>{"queue 0", "queue 1"});
  CHECK(world.state.queues().At(QueueId{1}).revision == before);
  const auto stored = DecodeQueueRecord(QueueKey(QueueId{1}), *batch.records[1].value, nullptr);
  REQUIRE(stored.ok());
  CHECK(stored->usage == world.state.queues().At(QueueId{1}).usage);
  CHECK_FALSE(stored->usage.empty());
}

TEST_CASE("an eviction is kept with the job, even if a status decided before it is applied later") {
  World world;
  world.Begin();
  world.Must(JobSubmitted{JobId{1}, SmallJob("a", QueueId{1})});
  world.Must(JobSubmitted{JobId{2}, SmallJob("b", QueueId{1})});
  world.Must(TasksBound{JobId{1}, true, {{0, NodeId{1}, {}}}});
  JobStatus status = world.state.jobs().At(JobId{1}).status;
  world.Must(TasksReleased{JobId{1}, {0}, true, ReleaseReason::kReclaimed, JobId{2}, "owed"});
  status.message = "made before";
  world.Must(JobStatusChanged{JobId{1}, status});
  const JobStatus& now = world.state.jobs().At(JobId{1}).status;
  CHECK(now.message == "made before");
  CHECK(now.evictions == 1);
  CHECK(now.eviction == Eviction{world.now, ReleaseReason::kReclaimed, JobId{2}, 1, "owed"});
  CHECK_FALSE(world.recorder
                  .Apply({world.now, TasksReleased{JobId{1}, {0}, true, ReleaseReason::kPreempted}})
                  .ok());  // no beneficiary
  world.recorder.Finish();
}

TEST_CASE("a turn without effects takes no sequence number") {
  World world;
  world.Begin();
  CHECK_FALSE(world.recorder.Apply({world.now, JobDeleted{JobId{77}}}).ok());
  CHECK_FALSE(world.recorder.Finish().has_value());
  world.recorder.Begin(world.sequence, world.now);
  world.recorder.Put({RecordKind::kRequest, "r1", "answer"});
  const auto batch = world.recorder.Finish();
  REQUIRE(batch.has_value());
  CHECK(batch->sequence == world.sequence);
  CHECK(DecodeTurn(batch->log).value().events.empty());
}

TEST_CASE("watchers get names and states from the log alone") {
  World world;
  world.Begin();
  JobSubmitted submitted{JobId{1}, SmallJob("a", QueueId{1})};
  submitted.spec.owner = "ann";
  world.Must(std::move(submitted));
  world.Must(TasksBound{JobId{1}, true, {{0, NodeId{1}, {}}}});
  world.Must(NodeSilenced{NodeId{1}});
  world.Must(NodeFenced{NodeId{1}});
  JobStatus failed = world.state.jobs().At(JobId{1}).status;
  failed.state = JobState::kFailed;
  world.Must(JobStatusChanged{JobId{1}, failed});
  world.Must(JobDeleted{JobId{1}});
  world.Must(NodeDeleted{NodeId{1}});
  world.Must(QueueOpened{QueueId{1}, false});
  const auto turn = ParseTurn(world.recorder.Finish().value().log).value();
  REQUIRE(turn.events_size() == 8);
  CHECK(turn.sequence() == 2);
  CHECK(turn.events(0).job_name() == "a");
  CHECK(turn.events(0).has_job_state());
  const auto& bound = turn.events(1).tasks(0);
  CHECK(bound.name() == "w-0");
  CHECK(bound.node_name() == "n1");
  CHECK(bound.state() == store::v1::TASK_BOUND);
  CHECK(bound.attempt() == 1);
  const auto& silenced = turn.events(2);
  CHECK(silenced.node_name() == "n1");
  CHECK(silenced.node_state() == store::v1::NODE_SILENT);
  CHECK(silenced.tasks(0).job_name() == "a");
  CHECK(silenced.tasks(0).job() == 1);
  CHECK(silenced.tasks(0).state() == store::v1::TASK_LOST);
  CHECK(turn.events(3).tasks(0).state() == store::v1::TASK_FAILED);
  CHECK(turn.events(4).job_state() == store::v1::JOB_FAILED);
  CHECK(turn.events(5).job_name() == "a");
  CHECK_FALSE(turn.events(5).has_job_state());
  CHECK(turn.events(6).node_name() == "n1");
  CHECK(turn.events(7).queue_name() == "main");
  CHECK(turn.events(7).queue_open() == false);
  for (const int of_job : {0, 1, 4, 5}) {
    CHECK(turn.events(of_job).seen_in() == 1);
    CHECK(turn.events(of_job).owner() == "ann");
  }
  CHECK(silenced.tasks(0).seen_in() == 1);
  CHECK(silenced.tasks(0).owner() == "ann");
}

TEST_CASE("ids of deleted objects are not reused after a restart") {
  World world;
  MemoryStore store;
  world.Begin();
  world.Must(JobSubmitted{JobId{1}, SmallJob("a", QueueId{1})});
  JobStatus done;
  done.state = JobState::kCancelled;
  world.Must(JobStatusChanged{JobId{1}, done});
  world.Must(JobDeleted{JobId{1}});
  Batch batch = world.recorder.Finish().value();
  batch.sequence = 1;  // the cluster's own first turn is not stored: its records are not needed
  REQUIRE(store.Append({&batch}).ok());
  ClusterState loaded;
  REQUIRE(LoadState(
              store, loaded, [](StoredRequest) {}, nullptr)
              .ok());
  CHECK(loaded.next_job_id() == JobId{2});
  CHECK(loaded.jobs().empty());
}

TEST_CASE("unknown fields of a record are preserved by its next write") {
  MemoryStore store;
  RandomCluster cluster(4);
  Run(cluster, store, 20);
  const std::string added = std::string("\xa2\x06\x03") + "new";  // field 100
  const std::string key = NodeKey(NodeId{1});
  Batch newer{.sequence = store.LastSequence() + 1, .records = {}, .log = {}};
  newer.records.push_back(
      {RecordKind::kNode, key, store.Read(RecordKind::kNode, key).value() + added});
  REQUIRE(store.Append({&newer}).ok());

  ClusterState state;
  Preserved preserved;
  REQUIRE(LoadState(
              store, state, [](StoredRequest) {}, &preserved)
              .ok());
  CHECK(preserved.size() == 1);
  TurnRecorder recorder(state, &preserved);
  recorder.Begin(store.LastSequence() + 1, absl::FromUnixSeconds(1'800'000'000));
  REQUIRE(recorder
              .Apply({absl::FromUnixSeconds(1'800'000'000),
                      NodeSteered{NodeId{1}, true, false, "look"}})
              .ok());
  const Batch batch = recorder.Finish().value();
  REQUIRE(store.Append({&batch}).ok());
  const std::string rewritten = store.Read(RecordKind::kNode, key).value();
  CHECK_THAT(rewritten, Contains("look"));
  CHECK_THAT(rewritten, Contains(added));
}

TEST_CASE("inconsistent records are refused by name") {
  MemoryStore store;
  const std::string task = EncodeTaskRecord(Task{}, "");
  Batch batch{.sequence = 1, .records = {}, .log = {}};
  std::string reason;
  SECTION("a task without a job") {
    batch.records.push_back({RecordKind::kTask, TaskRecordKey({JobId{5}, 0}), task});
    reason = "task 5/0: ";
  }
  SECTION("a job without a queue") {
    batch.records.push_back(
        {RecordKind::kJobSpec, JobKey(JobId{5}),
         EncodeJobSpecRecord(SmallJob("x", QueueId{9}), absl::Now(), 1, {}, {}, "")});
    reason = "job_spec 5: ";
  }
  SECTION("a job whose id is not below the next id") {
    batch.records.push_back(
        {RecordKind::kJobSpec, JobKey(JobId{5}),
         EncodeJobSpecRecord(SmallJob("x", kRootQueue), absl::Now(), 1, {}, {}, "")});
    batch.records.push_back({RecordKind::kMeta, std::string(kNextIdsKey),
                             EncodeNextIds({JobId{5}, NodeId{1}, QueueId{1}, HyperNodeId{1}})});
    reason = "meta next_ids: ";
  }
  SECTION("a job with too many tasks") {
    JobSpec spec = SmallJob("x", kRootQueue);
    spec.groups[0].replicas = 200'000'000;
    batch.records.push_back({RecordKind::kJobSpec, JobKey(JobId{5}),
                             EncodeJobSpecRecord(spec, absl::Now(), 1, {}, {}, "")});
    reason = "job_spec 5: job x has 200000000 tasks; at most 30000";
  }
  SECTION("a HyperNode without a tier") {
    HyperNodeSpec spec;
    spec.name = "rack";
    spec.tier = 0;
    batch.records.push_back(
        {RecordKind::kHyperNode, HyperNodeKey(HyperNodeId{3}), EncodeHyperNodeRecord(spec, 1)});
    reason = "hyper_node 3: HyperNode rack: its tier must be 1 to 100, not 0";
  }
  SECTION("two HyperNodes that claim the same member") {
    for (uint32_t id : {3u, 4u}) {
      HyperNodeSpec spec;
      spec.name = absl::StrCat("pod-", id);
      spec.tier = 2;
      spec.members = {{.type = HyperNodeMember::Type::kHyperNode, .text = "rack"}};
      batch.records.push_back(
          {RecordKind::kHyperNode, HyperNodeKey(HyperNodeId{id}), EncodeHyperNodeRecord(spec, 1)});
    }
    reason = "hyper_node 4: HyperNode rack is a member of pod-3 and of pod-4: one parent each";
  }
  SECTION("a node in a HyperNode that does not exist") {
    NodeSpec spec;
    spec.name = "n";
    batch.records.push_back({RecordKind::kNode, NodeKey(NodeId{2}),
                             EncodeNodeRecord(spec, {}, {HyperNodeId{7}}, {}, 1)});
    reason = "node 2: node 2: no HyperNode 7";
  }
  REQUIRE(store.Append({&batch}).ok());
  ClusterState state;
  const auto loaded = LoadState(
      store, state, [](StoredRequest) {}, nullptr);
  CHECK(absl::IsDataLoss(loaded.status()));
  CHECK_THAT(std::string(loaded.status().message()), Catch::Matchers::StartsWith(reason));
}

// ---- fsck

struct FsckWorld {
  TempDirectory directory;
  std::string path = directory / "a";
  RocksDbOptions options;
  RandomCluster cluster{7};

  FsckWorld() {
    options.directory = path;
    auto store = RocksDbStore::Open(options).value();
    Run(cluster, *store, 50);
  }
  absl::Status Check(std::string* text) {
    std::ostringstream report;
    absl::Status status = Fsck(path, report);
    *text = report.str();
    return status;
  }
};

TEST_CASE("fsck of a healthy store reports it as clean and changes nothing") {
  FsckWorld world;
  std::string text;
  REQUIRE(world.Check(&text).ok());
  CHECK_THAT(text, Contains("the log's events give the same state") && Contains("clean"));
  REQUIRE(world.Check(&text).ok());

  auto store = RocksDbStore::Open(world.options).value();
  CHECK(absl::IsUnavailable(world.Check(&text)));  // in use
  REQUIRE(store->TrimLog(store->LastSequence() - 3).ok());
  store.reset();
  REQUIRE(world.Check(&text).ok());
  CHECK_THAT(text, Contains(" 3 batches"));
  CHECK_THAT(text, Contains("the log's beginning has aged out"));
}

TEST_CASE("fsck detects records that differ from the log") {
  FsckWorld world;
  {
    auto store = RocksDbStore::Open(world.options).value();
    Batch batch{.sequence = store->LastSequence() + 1, .records = {}, .log = {}};
    store::v1::LogTurn turn;
    turn.set_sequence(batch.sequence);
    batch.log = turn.SerializeAsString();
    QueueSpec spec;
    spec.name = "from nowhere";
    const NextIds ids{world.cluster.state().next_job_id(), world.cluster.state().next_node_id(),
                      QueueId{1000}, world.cluster.state().next_hyper_node_id()};
    StoredQueue nowhere;
    nowhere.spec = spec;
    nowhere.revision = 1;
    batch.records = {{RecordKind::kQueue, QueueKey(QueueId{999}), EncodeQueueRecord(nowhere)},
                     {RecordKind::kMeta, std::string(kNextIdsKey), EncodeNextIds(ids)}};
    REQUIRE(store->Append({&batch}).ok());
  }
  std::string text;
  const absl::Status status = world.Check(&text);
  CHECK(absl::IsDataLoss(status));
  CHECK_THAT(text, Contains("the records differ from the log"));
}

TEST_CASE("fsck detects a record that does not decode, and a missing store") {
  FsckWorld world;
  {
    auto store = RocksDbStore::Open(world.options).value();
    Batch batch{.sequence = store->LastSequence() + 1, .records = {}, .log = {}};
    store::v1::LogTurn turn;
    turn.set_sequence(batch.sequence);
    batch.log = turn.SerializeAsString();
    batch.records = {{RecordKind::kNode, NodeKey(NodeId{1}), "\xff"}};
    REQUIRE(store->Append({&batch}).ok());
  }
  std::string text;
  CHECK(absl::IsDataLoss(world.Check(&text)));
  CHECK_THAT(text, Contains("node 1: not a valid record"));
  std::ostringstream report;
  CHECK(absl::IsNotFound(Fsck(world.directory / "nothing", report)));
}

}  // namespace
}  // namespace berth
