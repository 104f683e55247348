// Committers: order, groups, a full disk, a fatal error.
#include "server/loop/committer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "storage/memory/memory_store.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "support/log.h"
#include "tests/unit/storage/fault_file_system.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

const bool kQuiet = StartLog("error", "/dev/null").ok();

Batch MakeBatch(uint64_t sequence, size_t bytes = 10) {
  return {.sequence = sequence, .records = {}, .log = std::string(bytes, 'x')};
}

// The effects that ran, in order. Thread-safe.
class Done {
 public:
  absl::AnyInvocable<void() &&> Note(uint64_t sequence) {
    return [this, sequence] {
      absl::MutexLock lock(&mutex_);
      sequences_.push_back(sequence);
    };
  }
  void WaitFor(size_t count) {
    const auto enough = [this, count]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return sequences_.size() >= count;
    };
    absl::MutexLock lock(&mutex_);
    REQUIRE(mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(60)));
  }
  std::vector<uint64_t> all() {
    absl::MutexLock lock(&mutex_);
    return sequences_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<uint64_t> sequences_ ABSL_GUARDED_BY(mutex_);
};

std::vector<uint64_t> UpTo(uint64_t last) {
  std::vector<uint64_t> sequences;
  for (uint64_t i = 1; i <= last; ++i) sequences.push_back(i);
  return sequences;
}

// A store whose Append blocks until it is released, and that counts its groups.
class GatedStore final : public Store {
 public:
  absl::Status Load(
      absl::FunctionRef<absl::Status(RecordKind, absl::string_view, absl::string_view)> visit)
      override {
    return below_.Load(visit);
  }
  uint64_t LastSequence() const override { return below_.LastSequence(); }
  std::string ClusterId() const override { return below_.ClusterId(); }
  absl::Status Append(const std::vector<const Batch*>& batches) override {
    entered_.Notify();
    gate_.WaitForNotification();
    groups_.push_back(batches.size());
    return below_.Append(batches);
  }
  absl::StatusOr<std::string> Read(RecordKind kind, absl::string_view key) const override {
    return below_.Read(kind, key);
  }
  absl::StatusOr<std::vector<LogEntry>> ReadLog(uint64_t after, size_t limit) const override {
    return below_.ReadLog(after, limit);
  }
  absl::Status TrimLog(uint64_t sequence) override { return below_.TrimLog(sequence); }

  void WaitUntilEntered() { entered_.WaitForNotification(); }
  void Open() { gate_.Notify(); }
  const std::vector<size_t>& groups() const { return groups_; }  // call after Stop()

 private:
  struct Once {
    absl::Notification notification;
    void Notify() {
      if (!notification.HasBeenNotified()) notification.Notify();
    }
    void WaitForNotification() { notification.WaitForNotification(); }
  };
  MemoryStore below_;
  Once entered_, gate_;
  std::vector<size_t> groups_;
};

TEST_CASE("effects run in order, after their batch is stored") {
  MemoryStore store;
  Done done;
  std::atomic<int> early{0};
  {
    GroupCommitter committer(&store);
    for (uint64_t i = 1; i <= 500; ++i) {
      committer.Commit(MakeBatch(i), [&, i, note = done.Note(i)]() mutable {
        if (store.LastSequence() < i || committer.DurableSequence() < i) ++early;
        std::move(note)();
      });
    }
    done.WaitFor(500);
    CHECK(committer.Backlog() == 0);
    CHECK(committer.PausedReason().empty());
  }
  CHECK(early == 0);
  CHECK(done.all() == UpTo(500));
}

TEST_CASE("batches that queue up during a write go into the next write") {
  GatedStore store;
  Done done;
  GroupCommitter committer(&store);
  committer.Commit(MakeBatch(1), done.Note(1));
  store.WaitUntilEntered();
  for (uint64_t i = 2; i <= 2 + kMaxGroupBatches; ++i) committer.Commit(MakeBatch(i), done.Note(i));
  CHECK(committer.Backlog() == 2 + kMaxGroupBatches);
  CHECK(done.all().empty());
  store.Open();
  committer.Stop();  // writes all queued batches
  CHECK(done.all() == UpTo(2 + kMaxGroupBatches));
  CHECK(store.groups() == std::vector<size_t>{1, kMaxGroupBatches, 1});
  CHECK(committer.counters().writes == 3);
  CHECK(committer.counters().batches == 2 + kMaxGroupBatches);
  committer.Commit(MakeBatch(1000), done.Note(1000));  // too late
  CHECK(committer.Backlog() == 0);
}

TEST_CASE("a group is bounded in bytes") {
  GatedStore store;
  GroupCommitter committer(&store);
  committer.Commit(MakeBatch(1), nullptr);
  store.WaitUntilEntered();
  for (uint64_t i = 2; i <= 5; ++i) committer.Commit(MakeBatch(i, kMaxGroupBytes / 2), nullptr);
  store.Open();
  committer.Stop();
  CHECK(store.groups() == std::vector<size_t>{1, 2, 2});
}

TEST_CASE("a full disk pauses: no effect runs, and the same batches are written later") {
  MemoryStore store;
  std::atomic<bool> full{true};
  std::atomic<int> tries{0};
  store.SetFault([&] {
    ++tries;
    return full ? absl::ResourceExhaustedError("disk full: /x") : absl::OkStatus();
  });
  Done done;
  CommitterOptions options;
  options.retry_delay = absl::Milliseconds(1);
  options.on_fatal = [](const absl::Status&) { FAIL("not fatal"); };
  GroupCommitter committer(&store, options);
  committer.Commit(MakeBatch(1), done.Note(1));
  while (tries < 5) absl::SleepFor(absl::Milliseconds(1));
  committer.Commit(MakeBatch(2), done.Note(2));
  CHECK(committer.PausedReason() == "disk full: /x");
  CHECK(done.all().empty());
  CHECK(committer.DurableSequence() == 0);
  full = false;
  done.WaitFor(2);
  CHECK(done.all() == UpTo(2));
  CHECK(committer.PausedReason().empty());
  CHECK(committer.counters().full_retries >= 4);
}

TEST_CASE("a committer can be stopped while the disk is full, and runs no effect") {
  MemoryStore store;
  std::atomic<int> tries{0};
  store.SetFault([&] {
    ++tries;
    return absl::ResourceExhaustedError("disk full");
  });
  Done done;
  GroupCommitter committer(&store);  // retries after half a second
  committer.Commit(MakeBatch(1), done.Note(1));
  while (tries == 0) absl::SleepFor(absl::Milliseconds(1));
  committer.Stop();
  CHECK(done.all().empty());
  CHECK(store.LastSequence() == 0);
}

TEST_CASE("a failed sync calls the handler once, runs no effect and is not retried") {
  TempDirectory directory;
  auto faults = std::make_shared<FaultFileSystem>();
  RocksDbOptions store_options;
  store_options.directory = directory / "a";
  store_options.file_system = faults;
  auto store = RocksDbStore::Open(store_options).value();
  Done done;
  std::atomic<int> fatal{0};
  std::string reason;
  CommitterOptions options;
  options.on_fatal = [&](const absl::Status& status) {
    reason = status.ToString();
    ++fatal;
  };
  {
    GroupCommitter committer(store.get(), options);
    committer.Commit(MakeBatch(1), done.Note(1));
    done.WaitFor(1);
    faults->FailSyncs(".log");
    committer.Commit(MakeBatch(2), done.Note(2));
    while (fatal == 0) absl::SleepFor(absl::Milliseconds(1));
    faults->FailSyncs("");
    committer.Commit(MakeBatch(3), done.Note(3));
    committer.Stop();
    CHECK(committer.DurableSequence() == 1);
  }
  CHECK(fatal == 1);
  CHECK(done.all() == UpTo(1));
  CHECK_THAT(reason, Contains("sync failed") && Contains(".log"));
}

TEST_CASE("by default a store failure ends the process with status 74") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    close(STDERR_FILENO);
    ExitOnStoreFailure(absl::InternalError("sync failed"));
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 74);
}

TEST_CASE("the synchronous committer writes at once, or on flush") {
  MemoryStore store;
  Done done;
  SyncCommitter at_once(&store);
  at_once.Commit(MakeBatch(1), done.Note(1));
  CHECK(at_once.DurableSequence() == 1);
  CHECK(done.all() == UpTo(1));

  SyncCommitter later(&store, SyncCommitter::Mode::kOnFlush);
  later.Commit(MakeBatch(2), done.Note(2));
  later.Commit(MakeBatch(3), done.Note(3));
  CHECK(later.Backlog() == 2);
  CHECK(store.LastSequence() == 1);
  CHECK(later.Flush());
  CHECK(done.all() == UpTo(3));
  CHECK(later.DurableSequence() == 3);
}

TEST_CASE(
    "the synchronous committer keeps batches that a full disk refused, and dies of other errors") {
  MemoryStore store;
  Done done;
  absl::Status fault = absl::ResourceExhaustedError("disk full");
  store.SetFault([&] { return fault; });
  int fatal = 0;
  SyncCommitter committer(&store, SyncCommitter::Mode::kOnFlush,
                          [&](const absl::Status&) { ++fatal; });
  committer.Commit(MakeBatch(1), done.Note(1));
  CHECK_FALSE(committer.Flush());
  CHECK(committer.PausedReason() == "disk full");
  fault = absl::OkStatus();
  CHECK(committer.Flush());
  CHECK(committer.PausedReason().empty());
  CHECK(done.all() == UpTo(1));

  fault = absl::InternalError("sync failed");
  committer.Commit(MakeBatch(2), done.Note(2));
  CHECK_FALSE(committer.Flush());
  fault = absl::OkStatus();
  CHECK_FALSE(committer.Flush());
  committer.Commit(MakeBatch(3), done.Note(3));
  CHECK(fatal == 1);
  CHECK(done.all() == UpTo(1));
  CHECK(store.LastSequence() == 1);
}

TEST_CASE("a crash of the synchronous committer leaves a prefix on disk and runs no effect") {
  MemoryStore store;
  Done done;
  SyncCommitter committer(&store, SyncCommitter::Mode::kOnFlush);
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    committer.Commit(MakeBatch(sequence), done.Note(sequence));
  }
  committer.Crash(2);
  CHECK(store.LastSequence() == 2);
  CHECK_FALSE(committer.Flush());
  committer.Commit(MakeBatch(3), done.Note(3));
  CHECK_FALSE(committer.Flush());
  CHECK(store.LastSequence() == 2);
  CHECK(done.all().empty());
}

}  // namespace
}  // namespace berth
