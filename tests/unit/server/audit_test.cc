// The audit: entries of commands, refused calls, what a crash leaves.
#include "server/audit/audit.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "server/audit/entries.h"
#include "tests/unit/server/loop_world.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

namespace fs = std::filesystem;
using testing::World;

Actor ActorNamed(const std::string& name, const std::string& method) {
  return {.name = name, .door = Door::kIdentity, .address = "10.0.0.7:1", .method = method};
}

Command CreateQueues(std::vector<std::string> names, std::string by) {
  return [=](Turn& turn) {
    if (!by.empty()) turn.By(ActorNamed(by, "QueueService.CreateQueue"));
    for (const std::string& name : names) {
      QueueSpec spec;
      spec.name = name;
      REQUIRE(turn.Emit(QueueCreated{turn.state().next_queue_id(), spec}).ok());
    }
  };
}

// Runs calls when the test says so.
class LateExecutor final : public Executor {
 public:
  void Run(absl::AnyInvocable<void() &&> call) override { calls_.push_back(std::move(call)); }
  void Drop() { calls_.clear(); }
  void RunAll() {
    while (!calls_.empty()) {
      auto call = std::move(calls_.front());
      calls_.pop_front();
      std::move(call)();
    }
  }

 private:
  std::deque<absl::AnyInvocable<void() &&>> calls_;
};

struct AuditWorld {
  TempDirectory directory;
  World world;
  LateExecutor executor;
  AuditLimits limits;
  std::unique_ptr<Audit> audit;

  AuditWorld() { Open(); }
  void Open() {
    audit =
        std::make_unique<Audit>(directory / "audit", limits, &world.store, &executor, &world.clock);
    world.loop->AddListener(audit->listener());
  }
  void Restart() {
    executor.Drop();  // calls of a crashed process never run
    world.Restart();
    Open();
  }
  void Do(Command command) {
    REQUIRE(world.loop->Post(std::move(command)).ok());
    world.Run();
  }
  std::vector<v1::AuditEntry> Entries(bool refused = false) {
    std::vector<v1::AuditEntry> found;
    audit->Ask(refused, [&](AuditChain& chain) {
      REQUIRE(chain
                  .Read(0, absl::InfinitePast(),
                        [&](v1::AuditEntry entry) {
                          found.push_back(std::move(entry));
                          return true;
                        })
                  .ok());
    });
    executor.RunAll();
    return found;
  }
  // "ada: queue a b created"
  std::vector<std::string> Lines() {
    std::vector<std::string> lines;
    for (const v1::AuditEntry& entry : Entries()) {
      std::string line = entry.actor().name() + ":";
      for (const v1::AuditChange& change : entry.changes()) {
        line += " " + change.object();
        for (const std::string& name : change.names()) line += " " + name;
        line += " " + change.action();
      }
      lines.push_back(line + entry.message());
    }
    return lines;
  }
  absl::StatusOr<ChainSummary> Verify() {
    absl::StatusOr<ChainSummary> found = absl::UnknownError("");
    audit->Ask(false, [&](AuditChain& chain) { found = chain.Verify(); });
    executor.RunAll();
    return found;
  }
};

TEST_CASE("audit: each command has an entry with its actor and what it changed") {
  AuditWorld world;
  world.Do(CreateQueues({"nobody's"}, ""));
  world.Do(CreateQueues({"a", "b"}, "ada"));
  world.Do([](Turn& turn) {
    turn.By(ActorNamed("bob", "QueueService.CloseQueue"));
    REQUIRE(turn.Emit(QueueOpened{turn.state().FindQueue("a")->id, false}).ok());
    REQUIRE(turn.Emit(QueueOpened{turn.state().FindQueue("b")->id, true}).ok());
  });
  world.Do([](Turn& turn) { turn.By(ActorNamed("carol", "JobService.CancelJob")); });
  CHECK(world.Lines() ==
        std::vector<std::string>{"ada: queue a b created", "bob: queue a closed queue b opened"});
  const v1::AuditEntry entry = world.Entries()[0];
  CHECK(entry.sequence() == 1);
  CHECK(entry.method() == "QueueService.CreateQueue");
  CHECK(entry.actor().kind() == v1::AuditActor::USER);
  CHECK(entry.actor().door() == v1::AuditActor::IDENTITY);
  CHECK(entry.actor().address() == "10.0.0.7:1");
  CHECK(entry.revision() == world.world.store.LastSequence() - 1);
  CHECK(entry.has_time());
  CHECK(world.Verify().value().entries == 2);
}

TEST_CASE("audit: entries of jobs name them, and nothing else of them") {
  AuditWorld world;
  REQUIRE(world.world.loop
              ->Post([](Turn& turn) {
                turn.By(ActorNamed("ada", "JobService.SubmitJobs"));
                JobSpec spec;
                spec.queue = turn.state().FindQueue("main")->id;
                spec.min_available = 1;
                GroupSpec& group = spec.groups.emplace_back();
                group.name = "secret-group";
                group.shape.cpu_millis = 1000;
                for (const char* name : {"j1", "j2"}) {
                  spec.name = name;
                  const JobId id = turn.state().next_job_id();
                  REQUIRE(turn.Emit(JobSubmitted{id, spec}).ok());
                  turn.PutCold(id, std::make_shared<const std::string>("TOKEN=12345"));
                }
                const JobId first = turn.state().FindJob("j1")->id;
                REQUIRE(turn.Emit(JobSuspended{first, true}).ok());
                REQUIRE(turn.Emit(JobSuspended{first, false}).ok());
                REQUIRE(turn.Emit(JobCancelled{first, "because"}).ok());
              })
              .ok());
  world.world.Run();
  CHECK(world.Lines().back() ==
        "ada: job j1 j2 submitted job j1 suspended job j1 resumed job j1 cancelled");
  const std::string bytes = world.Entries().back().SerializeAsString();
  for (const char* secret : {"TOKEN", "secret-group", "because"}) {
    CHECK(bytes.find(secret) == std::string::npos);
  }
  AuditFilter filter{.job = "j2"};
  CHECK(Matches(filter, world.Entries().back()));
  filter.job = "j";
  CHECK_FALSE(Matches(filter, world.Entries().back()));
}

TEST_CASE("audit: a command with many objects has several entries") {
  AuditWorld world;
  std::vector<std::string> names;
  for (size_t i = 0; i <= kMaxAuditNames; ++i) names.push_back("q" + std::to_string(i));
  world.Do(CreateQueues(names, "ada"));
  const std::vector<v1::AuditEntry> entries = world.Entries();
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].changes(0).names_size() == static_cast<int>(kMaxAuditNames));
  CHECK(entries[1].changes(0).names_size() == 1);
  CHECK(entries[1].part() == 1);
  CHECK(entries[0].revision() == entries[1].revision());
}

TEST_CASE("audit: what was not written before a crash is read from the log") {
  AuditWorld world;
  world.Do(CreateQueues({"a"}, "ada"));
  world.executor.RunAll();
  for (int i = 0; i < 3 * static_cast<int>(CommandTrail::kWaiting); ++i) {
    world.Do(CreateQueues({"b" + std::to_string(i)}, "bob"));
  }
  world.Restart();
  world.Do(CreateQueues({"c"}, "carol"));
  const std::vector<std::string> lines = world.Lines();
  CHECK(lines.size() == 2 + 3 * CommandTrail::kWaiting);
  CHECK(lines.front() == "ada: queue a created");
  CHECK(lines[1] == "bob: queue b0 created");
  CHECK(lines.back() == "carol: queue c created");
  CHECK(world.Verify().ok());
}

TEST_CASE("audit: more turns than are kept in memory are read from the store") {
  AuditWorld world;
  for (int i = 0; i < 2 * static_cast<int>(CommandTrail::kWaiting); ++i) {
    world.Do(CreateQueues({"q" + std::to_string(i)}, "ada"));
  }
  CHECK(world.Lines().size() == 2 * CommandTrail::kWaiting);
  world.Do(CreateQueues({"last"}, "ada"));
  CHECK(world.Lines().size() == 2 * CommandTrail::kWaiting + 1);
}

TEST_CASE(
    "audit: an entry that a crash left out of its revision is written again, the others not") {
  AuditWorld world;
  REQUIRE(world.world.loop->Post(CreateQueues({"a"}, "ada")).ok());
  REQUIRE(world.world.loop->Post(CreateQueues({"b"}, "bob")).ok());
  world.world.Run();
  CHECK(world.Lines().size() == 2);
  world.audit.reset();
  const std::string path = world.directory / "audit/commands/00000000000000000001.chain";
  fs::resize_file(path, fs::file_size(path) - 3);
  world.Restart();
  CHECK(world.Lines() == std::vector<std::string>{"ada: queue a created", "bob: queue b created"});
}

TEST_CASE("audit: a part of the log that aged out unwritten is reported as a gap") {
  AuditWorld world;
  world.Do(CreateQueues({"a"}, "ada"));
  world.executor.RunAll();
  for (const char* name : {"b", "c", "d"}) world.Do(CreateQueues({name}, "bob"));
  REQUIRE(world.world.store.TrimLog(world.world.store.LastSequence() - 1).ok());
  world.Restart();
  const std::vector<std::string> lines = world.Lines();
  REQUIRE(lines.size() == 3);
  CHECK(lines[1].find(":the log of revisions") != std::string::npos);
  CHECK(lines[1].find("aged out") != std::string::npos);
  CHECK(lines[2] == "bob: queue d created");
}

TEST_CASE("audit: a log that aged out after it was written is no gap") {
  AuditWorld world;
  world.Do(CreateQueues({"a"}, "ada"));
  for (const char* name : {"b", "c", "d"}) world.Do(CreateQueues({name}, ""));
  world.audit->Tick();
  world.executor.RunAll();
  world.Do(CreateQueues({"e"}, ""));
  REQUIRE(world.world.store.TrimLog(world.world.store.LastSequence() - 2).ok());
  world.Restart();
  world.Do(CreateQueues({"f"}, "ada"));
  CHECK(world.Lines() == std::vector<std::string>{"ada: queue a created", "ada: queue f created"});
}

TEST_CASE("audit: it continues with what a restored store does") {
  AuditWorld world;
  for (const char* name : {"a", "b", "c"}) world.Do(CreateQueues({name}, "ada"));
  CHECK(world.Lines().size() == 3);
  // The same files beside a store that has not come as far.
  AuditWorld restored;
  restored.audit.reset();
  fs::copy(world.directory / "audit", restored.directory / "audit", fs::copy_options::recursive);
  restored.Restart();
  for (const char* name : {"x", "y", "z"}) restored.Do(CreateQueues({name}, "bob"));
  CHECK(restored.Lines() == std::vector<std::string>{"ada: queue a created", "ada: queue b created",
                                                     "ada: queue c created", "bob: queue x created",
                                                     "bob: queue y created",
                                                     "bob: queue z created"});
}

TEST_CASE("audit: a store of an older format has no entries of commands") {
  AuditWorld world;
  world.world.store_format = kFormatOfActors - 1;
  world.Restart();
  world.Do(CreateQueues({"a"}, "ada"));
  CHECK(world.Lines().empty());
}

TEST_CASE("audit: a changed byte is found, and its entry named") {
  AuditWorld world;
  for (const char* name : {"a", "b", "c"}) world.Do(CreateQueues({name}, "ada"));
  CHECK(world.Verify().value().entries == 3);
  const std::string path = world.directory / "audit/commands/00000000000000000001.chain";
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  size_t second = content.find("ada", content.find("ada") + 3);
  file.seekp(static_cast<std::streamoff>(second));
  file << "eve";
  file.close();
  const absl::Status found = world.Verify().status();
  CHECK(absl::IsDataLoss(found));
  CHECK(std::string(found.message()).find("entry 2 was changed") == 0);
}

TEST_CASE("audit: without a directory nothing is written") {
  World world;
  LateExecutor executor;
  Audit audit("", {}, &world.store, &executor, &world.clock);
  audit.refused().Note(ActorNamed("eve", "x"), "", absl::PermissionDeniedError("no"));
  audit.Tick();
  absl::Status status;
  audit.Ask(false, [&](AuditChain& chain) { status = chain.Verify().status(); });
  executor.RunAll();
  CHECK(absl::IsFailedPrecondition(status));
}

TEST_CASE("audit: a disk that cannot be written is tried again") {
  AuditWorld world;
  const std::string place = world.directory / "audit";
  std::ofstream(place) << "in the way";
  world.Do(CreateQueues({"a"}, "ada"));
  world.audit->refused().Note(ActorNamed("eve", "x"), "", absl::PermissionDeniedError("no"));
  world.audit->Tick();
  world.executor.RunAll();
  fs::remove(place);
  CHECK(world.Lines() == std::vector<std::string>{"ada: queue a created"});
  const std::vector<v1::AuditEntry> refused = world.Entries(true);
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].message() == "and 1 more");
}

TEST_CASE("audit refused: entries say who, what and why, with bounded texts") {
  AuditWorld world;
  world.audit->refused().Note(ActorNamed("eve", "JobService.CancelJob"), "job/train",
                              absl::PermissionDeniedError("\"eve\" may not cancel job \"train\""));
  world.audit->refused().Note(ActorNamed("eve", "m"), std::string(10'000, 't'),
                              absl::PermissionDeniedError(std::string(10'000, '\xff')));
  const std::vector<v1::AuditEntry> entries = world.Entries(true);
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].actor().name() == "eve");
  CHECK(entries[0].method() == "JobService.CancelJob");
  CHECK(entries[0].target() == "job/train");
  CHECK(entries[0].message() == "\"eve\" may not cancel job \"train\"");
  CHECK(entries[1].target().size() <= RefusedCalls::kMaxTarget);
  CHECK(entries[1].message().size() <= RefusedCalls::kMaxMessage);
  CHECK(Matches({.job = "train"}, entries[0]));
  CHECK(Matches({.actor = "eve"}, entries[0]));
  CHECK_FALSE(Matches({.actor = "ev"}, entries[0]));
  CHECK(world.Entries(false).empty());
}

TEST_CASE("audit refused: a flood is counted, and hides nobody else") {
  AuditWorld world;
  const absl::Status no = absl::PermissionDeniedError("no");
  for (int i = 0; i < 1244; ++i) world.audit->refused().Note(ActorNamed("eve", "m"), "", no);
  world.audit->refused().Note(ActorNamed("ada", "m"), "", no);
  std::vector<v1::AuditEntry> entries = world.Entries(true);
  REQUIRE(entries.size() == RefusedCalls::kPerActor + 2);
  CHECK(entries[RefusedCalls::kPerActor].actor().name() == "ada");
  CHECK(entries.back().actor().name() == "eve");
  CHECK(entries.back().more() == 1234);
  CHECK(entries.back().message() == "and 1234 more");

  for (int i = 0; i < 5000; ++i) {
    world.audit->refused().Note(ActorNamed("u" + std::to_string(i), "m"), "", no);
  }
  const size_t before = entries.size();
  entries = world.Entries(true);
  uint64_t calls = 0;
  for (size_t i = before; i < entries.size(); ++i) {
    calls += entries[i].more() > 0 ? entries[i].more() : 1;
  }
  CHECK(calls == 5000);
  CHECK(entries.size() - before <= RefusedCalls::kActors + 1);
}

TEST_CASE("audit refused: the chain is bounded in bytes, and shortens no commands") {
  AuditWorld world;
  world.limits.max_bytes = 16 << 10;
  world.Restart();
  world.Do(CreateQueues({"a"}, "ada"));
  for (int second = 0; second < 200; ++second) {
    for (int i = 0; i < 20; ++i) {
      world.audit->refused().Note(ActorNamed("eve", "m"), std::string(200, 't'),
                                  absl::PermissionDeniedError("no"));
    }
    world.audit->Tick();
    world.executor.RunAll();
    world.world.clock.Advance(AuditChain::kTrimEvery);
  }
  uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(world.directory / "audit/refused")) {
    bytes += entry.file_size();
  }
  CHECK(bytes < 32 << 10);
  CHECK(world.Lines() == std::vector<std::string>{"ada: queue a created"});
  CHECK(world.Entries(true).front().sequence() > 1000);
}

}  // namespace
}  // namespace berth
