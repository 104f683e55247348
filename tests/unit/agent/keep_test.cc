// What jobs keep on a node for their next attempt: files, shared memory, and when they go.
#include <catch2/catch.hpp>
#include <fstream>
#include <set>

#include "clients/agent/kept_directories.h"
#include "clients/agent/supervisor/namespaces.h"
#include "tests/unit/agent/logic_world.h"
#include "tests/unit/agent/process_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::Id;

constexpr uint64_t kUs = 9;  // the incarnation of the server

class FakeKept final : public KeptFiles {
 public:
  std::vector<TaskId> Jobs() const override { return {jobs.begin(), jobs.end()}; }
  void Drop(const TaskId& job) override { jobs.erase(job); }
  std::set<TaskId> jobs;
};

struct Keeping : Agent {
  void Register(bool takes = true) {
    Begin();
    logic->SetKeptFiles(&kept);
    v1::ServerMessage message;
    v1::Welcome& welcome = *message.mutable_welcome();
    welcome.set_epoch(1);
    welcome.set_cluster_id("c");
    welcome.set_incarnation(kUs);
    welcome.mutable_lease()->set_seconds(300);
    welcome.mutable_heartbeat_interval()->set_seconds(100);
    welcome.set_takes_kept_files(takes);
    logic->OnServerMessage(Now(), message);
    logic->Tick(Now());
  }
  void Keep(uint64_t uid, uint64_t incarnation = kUs) {
    kept.jobs.insert({.job_uid = uid, .incarnation = incarnation});
  }
  bool Keeps(uint64_t uid) const {
    return kept.jobs.contains({.job_uid = uid, .incarnation = kUs});
  }
  // Jobs that were told since the last call; one list for each message.
  std::vector<std::vector<uint64_t>> Told() {
    std::vector<std::vector<uint64_t>> told;
    for (const v1::AgentMessage& message : link.sent) {
      const auto& uids = message.kept_files().job_uids();
      if (message.has_kept_files()) told.push_back({uids.begin(), uids.end()});
    }
    link.sent.clear();
    return told;
  }
  void Drop(std::vector<uint64_t> uids) {
    v1::ServerMessage message;
    for (const uint64_t uid : uids) message.mutable_drop_files()->add_job_uids(uid);
    logic->OnServerMessage(Now(), message);
  }
  void Prepare(uint64_t uid) {
    v1::ServerMessage message;
    *message.mutable_prepare()->mutable_key() = testing::Key(uid);
    message.mutable_prepare()->mutable_key()->set_incarnation(kUs);
    message.mutable_prepare()->mutable_launch()->add_command("train");
    logic->OnServerMessage(Now(), message);
  }
  FakeKept kept;
};

using Lists = std::vector<std::vector<uint64_t>>;

TEST_CASE("keep: an agent tells what is kept, and repeats it") {
  Keeping agent;
  agent.Keep(3);
  agent.Keep(5);
  agent.Register();
  CHECK(agent.Told() == Lists{{3, 5}});
  agent.Advance(absl::Seconds(29));
  CHECK(agent.Told().empty());
  agent.Advance(absl::Seconds(1));
  CHECK(agent.Told() == Lists{{3, 5}});
  agent.Drop({3, 4});
  CHECK_FALSE(agent.Keeps(3));
  CHECK(agent.Keeps(5));
  agent.Drop({5});
  agent.Advance(absl::Seconds(30));
  CHECK(agent.Told().empty());
}

TEST_CASE("keep: many jobs take several messages") {
  Keeping agent;
  for (uint64_t uid = 1; uid <= kMaxKeptFiles + 1; ++uid) agent.Keep(uid);
  agent.Register();
  const Lists told = agent.Told();
  REQUIRE(told.size() == 2);
  CHECK(told[0].size() == kMaxKeptFiles);
  CHECK(told[1] == std::vector<uint64_t>{kMaxKeptFiles + 1});
}

TEST_CASE("keep: older servers are not told, and nothing is removed") {
  Keeping agent;
  agent.Keep(3);
  agent.Keep(4, kUs + 1);
  agent.Register(false);
  agent.Advance(absl::Minutes(2));
  CHECK(agent.Told().empty());
  CHECK(agent.kept.jobs.size() == 2);
}

TEST_CASE("keep: files of another incarnation go") {
  Keeping agent;
  agent.Keep(3, kUs + 1);
  agent.Keep(3);
  agent.Register();
  CHECK(agent.Told() == Lists{{3}});
  CHECK(agent.kept.jobs.size() == 1);
  CHECK(agent.Keeps(3));
}

TEST_CASE("keep: not removed while a task of the job is here") {
  Keeping agent;
  agent.Keep(3);
  agent.Register();
  agent.Prepare(3);
  agent.Drop({3});
  CHECK(agent.Keeps(3));
  agent.Told();
  TaskEvent refused;
  refused.id = Id(3);
  refused.id.incarnation = kUs;
  refused.kind = TaskEvent::Kind::kRefused;
  agent.logic->OnTaskEvent(agent.Now(), refused);
  agent.Advance(kKeptFilesSoon);
  CHECK(agent.Told() == Lists{{3}});
  agent.Drop({3});
  CHECK_FALSE(agent.Keeps(3));
}

TaskUser Me() { return {.uid = geteuid(), .gid = getegid()}; }

TEST_CASE("keep: directories of jobs are found again") {
  testing::TemporaryDirectory state("/tmp");
  KeptDirectories kept(state.path());
  CHECK(kept.Jobs().empty());
  v1::TaskLaunch launch;
  const TaskId id = {.job_uid = 7, .task = 3, .attempt = 2, .incarnation = kUs};
  REQUIRE(kept.Make(id, launch, Me()).ok());
  CHECK(kept.Jobs().empty());
  launch.set_keep_disk(true);
  REQUIRE(kept.Make(id, launch, Me()).ok());
  REQUIRE(kept.Make({.job_uid = 8}, launch, Me()).ok());
  std::ofstream(kept.Disk(id) + "/shard") << "weights";
  REQUIRE(
      kept.Make({.job_uid = 7, .task = 4, .attempt = 3, .incarnation = kUs}, launch, Me()).ok());
  CHECK(std::filesystem::exists(kept.Disk(id) + "/shard"));
  std::filesystem::create_directories(state.path() + "/keep/not-a-job");
  std::vector<TaskId> jobs = kept.Jobs();
  std::sort(jobs.begin(), jobs.end());
  CHECK(jobs == std::vector<TaskId>{{.job_uid = 8}, JobOf(id)});
  kept.Drop(JobOf(id));
  CHECK(kept.Jobs() == std::vector<TaskId>{{.job_uid = 8}});
  CHECK_FALSE(std::filesystem::exists(kept.Disk(id)));
}

bool HasNamespaces() {
  if (geteuid() == 0 && TryNamespaces() == 0) return true;
  WARN("no root or no namespaces: not tested");
  return false;
}

TEST_CASE("keep: a task finds the memory and the files of the last attempt") {
  if (!HasNamespaces()) return;
  const bool memory = GENERATE(true, false);
  testing::Fixture f("/run");
  f.user = "nobody";
  f.Restart();
  f.launch.set_memory_bytes(int64_t{64} << 20);
  f.launch.set_keep_memory(memory);
  f.launch.set_keep_disk(true);
  const TaskId first = {.job_uid = 7, .attempt = 1}, second = {.job_uid = 7, .attempt = 2};
  f.Start(first, "echo far > $BERTH_KEEP/shard; echo near > ${BERTH_KEEP_MEMORY:-/dev/shm}/shard");
  f.Await(first, testing::Kind::kExited);
  f.runner->Remove(first);
  f.Restart();  // a new agent does not remove it either
  f.runner->CleanUp({});
  f.Start(second,
          "cat $BERTH_KEEP/shard /dev/shm/shard 2>&1; df -k --output=size /dev/shm | tail -1 | tr "
          "-d ' '");
  f.Await(second, testing::Kind::kExited);
  const std::string expected = memory
                                   ? "far\nnear\n65536\n"
                                   : "far\ncat: /dev/shm/shard: No such file or directory\n65536\n";
  CHECK(f.Log(second) == expected);
  const auto isolation = f.MakeIsolation();
  KeptFiles& kept = isolation->kept();
  REQUIRE(kept.Jobs().size() == 1);
  kept.Drop(kept.Jobs().front());
  CHECK(std::filesystem::is_empty(f.state.path() + "/keep"));
  CHECK_FALSE(std::filesystem::exists(f.state.path() + "/shm/7-0-0"));
}

TEST_CASE("keep: files count as what the task may write") {
  testing::Fixture f;
  f.launch.set_keep_disk(true);
  f.launch.set_scratch_bytes(1 << 20);
  f.Start(Id(7), "head -c 3000000 /dev/zero > $BERTH_KEEP/shard; sleep 100");
  const TaskEvent end = f.Await(Id(7), testing::Kind::kExited);
  CHECK(end.exit_code != 0);
  CHECK(end.message.find("scratch") != std::string::npos);
}

}  // namespace
}  // namespace berth
