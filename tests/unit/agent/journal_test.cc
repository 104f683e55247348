#include "clients/agent/journal.h"

#include <catch2/catch.hpp>

#include "support/crc32c.h"
#include "tests/unit/agent/fakes.h"

namespace berth {
namespace {

// Files in memory, with errors on demand.
class MemoryDisk final : public Disk {
 public:
  class MemoryFile final : public File {
   public:
    MemoryFile(MemoryDisk& disk, std::shared_ptr<std::string> data)
        : disk_(disk), data_(std::move(data)) {}
    absl::Status Append(absl::string_view data) override {
      std::string& file = *data_;
      const size_t room = disk_.capacity - std::min(disk_.capacity, file.size());
      file.append(data.data(), std::min(room, data.size()));
      return room < data.size() ? absl::ResourceExhaustedError("disk full") : absl::OkStatus();
    }
    absl::Status Truncate(uint64_t size) override {
      data_->resize(size);
      return absl::OkStatus();
    }
    absl::Status Sync() override {
      ++disk_.syncs;
      return disk_.sync_error;
    }

   private:
    MemoryDisk& disk_;
    std::shared_ptr<std::string> data_;  // survives a rename, as an inode does
  };
  absl::StatusOr<std::string> ReadFile(const std::string& path) override {
    if (!files.contains(path)) return absl::NotFoundError(path);
    return *files[path];
  }
  absl::StatusOr<std::unique_ptr<File>> OpenAppend(const std::string& path,
                                                   bool truncate) override {
    if (truncate || !files.contains(path)) files[path] = std::make_shared<std::string>();
    return std::make_unique<MemoryFile>(*this, files[path]);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    files[to] = files[from];
    files.erase(from);
    return absl::OkStatus();
  }
  absl::Status SyncDirectory(const std::string&) override { return absl::OkStatus(); }

  std::string& Text(const std::string& path) { return *files.at(path); }

  std::map<std::string, std::shared_ptr<std::string>> files;
  size_t capacity = size_t{1} << 30;
  absl::Status sync_error;
  int syncs = 0;
};

agent::v1::JournalRecord Task(uint64_t uid, agent::v1::TaskRecord::Phase phase,
                              uint64_t report = 0) {
  agent::v1::JournalRecord record;
  record.mutable_task()->mutable_key()->set_job_uid(uid);
  record.mutable_task()->set_phase(phase);
  record.mutable_task()->mutable_report()->set_report_id(report);
  return record;
}

std::unique_ptr<FileJournal> MustOpen(Disk& disk, size_t compact_bytes = 1 << 20) {
  auto journal = FileJournal::Open(disk, "d", {.compact_bytes = compact_bytes});
  REQUIRE(journal.ok());
  return *std::move(journal);
}

TEST_CASE("CRC-32C has its check value") { CHECK(Crc32c(0, "123456789") == 0xe3069283u); }

TEST_CASE("a journal returns what was appended, synced each time") {
  MemoryDisk disk;
  {
    auto journal = MustOpen(disk);
    const int before = disk.syncs;
    REQUIRE(journal->Append({Task(1, agent::v1::TaskRecord::PREPARED, 4)}).ok());
    CHECK(disk.syncs == before + 1);
    journal->AppendLater(Task(2, agent::v1::TaskRecord::ENDED, 9));
    CHECK(disk.syncs == before + 1);
    REQUIRE(journal->Append({Task(1, agent::v1::TaskRecord::RUNNING, 5)}).ok());
  }
  const auto journal = MustOpen(disk);
  CHECK(journal->state().tasks.size() == 2);
  CHECK(journal->state().tasks.at({1, 0, 0}).phase() == agent::v1::TaskRecord::RUNNING);
  CHECK(journal->state().identity.last_report_id() == 9);
}

TEST_CASE("a tail that is torn at any byte is cut off, and appends continue") {
  MemoryDisk disk;
  {
    auto journal = MustOpen(disk);
    REQUIRE(journal->Append({Task(1, agent::v1::TaskRecord::RUNNING)}).ok());
  }
  const size_t first = disk.Text("d/journal").size();
  {
    auto journal = MustOpen(disk);
    REQUIRE(journal
                ->Append({Task(2, agent::v1::TaskRecord::RUNNING, 77),
                          Task(3, agent::v1::TaskRecord::ENDED)})
                .ok());
  }
  const std::string whole = disk.Text("d/journal");
  for (size_t cut = first; cut < whole.size(); ++cut) {
    for (const bool zeros : {false, true}) {  // the size may be on disk before the data
      disk.Text("d/journal") =
          whole.substr(0, cut) + std::string(zeros ? whole.size() - cut : 0, '\0');
      if (zeros && disk.Text("d/journal") == whole) continue;
      auto journal = MustOpen(disk);
      CHECK(journal->state().tasks.size() == 1);
      CHECK(disk.Text("d/journal").size() == first);
      REQUIRE(journal->Append({Task(5, agent::v1::TaskRecord::RUNNING)}).ok());
      CHECK(MustOpen(disk)->state().tasks.size() == 2);
    }
  }
}

TEST_CASE("damage before intact records is refused with file and position") {
  MemoryDisk disk;
  size_t first = 0;
  {
    auto journal = MustOpen(disk);
    for (uint64_t uid = 1; uid <= 3; ++uid) {
      REQUIRE(journal->Append({Task(uid, agent::v1::TaskRecord::RUNNING)}).ok());
      if (uid == 1) first = journal->size();
    }
  }
  const std::string whole = disk.Text("d/journal");
  for (size_t at = 0; at < 2 * first; ++at) {
    disk.Text("d/journal") = whole;
    disk.Text("d/journal")[at] = static_cast<char>(whole[at] ^ 0x40);
    const auto journal = FileJournal::Open(disk, "d", {});
    REQUIRE(absl::IsDataLoss(journal.status()));
    CHECK(std::string(journal.status().message()).find("d/journal: damaged at byte") == 0);
  }
}

TEST_CASE("compaction keeps known state and drops replaced records") {
  MemoryDisk disk;
  {
    auto journal = MustOpen(disk, 2000);
    for (uint64_t i = 1; i <= 1000; ++i) {
      REQUIRE(journal->Append({Task(i % 3, agent::v1::TaskRecord::RUNNING, i)}).ok());
    }
    agent::v1::JournalRecord dropped;
    dropped.mutable_dropped()->set_job_uid(2);
    REQUIRE(journal->Append({dropped}).ok());
    CHECK(journal->size() < 4000);
  }
  const auto journal = MustOpen(disk);
  CHECK(journal->state().tasks.size() == 2);
  CHECK(journal->state().identity.last_report_id() == 1000);
  CHECK_FALSE(disk.files.contains("d/journal.new"));
}

TEST_CASE("a full disk leaves the journal unchanged, a failed sync breaks it for good") {
  MemoryDisk disk;
  auto journal = MustOpen(disk);
  REQUIRE(journal->Append({Task(1, agent::v1::TaskRecord::RUNNING)}).ok());
  const std::string before = disk.Text("d/journal");
  disk.capacity = before.size() + 3;
  CHECK(absl::IsResourceExhausted(journal->Append({Task(2, agent::v1::TaskRecord::RUNNING)})));
  CHECK(disk.Text("d/journal") == before);
  disk.capacity = size_t{1} << 20;
  CHECK(journal->Append({Task(2, agent::v1::TaskRecord::RUNNING)}).ok());
  disk.sync_error = absl::InternalError("fsync");
  CHECK_FALSE(journal->Append({Task(3, agent::v1::TaskRecord::RUNNING)}).ok());
  disk.sync_error = absl::OkStatus();
  CHECK_FALSE(journal->Append({Task(3, agent::v1::TaskRecord::RUNNING)}).ok());  // never retried
}

TEST_CASE("a newer journal is refused") {
  MemoryDisk disk;
  agent::v1::JournalRecord record;
  record.mutable_identity()->set_version(kJournalVersion + 1);
  REQUIRE(MustOpen(disk)->Append({record}).ok());
  CHECK(absl::IsFailedPrecondition(FileJournal::Open(disk, "d", {}).status()));
}

TEST_CASE("a journal works on a real disk") {
  testing::TemporaryDirectory directory;
  {
    auto journal = FileJournal::Open(SystemDisk(), directory.path(), {.compact_bytes = 500});
    REQUIRE(journal.ok());
    for (uint64_t i = 1; i <= 50; ++i)
      REQUIRE((*journal)->Append({Task(i % 2, agent::v1::TaskRecord::RUNNING, i)}).ok());
  }
  auto journal = FileJournal::Open(SystemDisk(), directory.path(), {});
  REQUIRE(journal.ok());
  CHECK((*journal)->state().tasks.size() == 2);
}

}  // namespace
}  // namespace berth
