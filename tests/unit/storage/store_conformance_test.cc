// The contract of every Store (storage/store.h), for each implementation.
#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "storage/keys.h"
#include "storage/load.h"
#include "storage/memory/memory_store.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

// A store that can be closed and reopened.
class MemoryFixture {
 public:
  Store& store() { return store_; }
  void Reopen() {}

 private:
  MemoryStore store_;
};

class RocksDbFixture {
 public:
  RocksDbFixture() { Reopen(); }
  Store& store() { return *store_; }
  void Reopen() {
    store_.reset();
    RocksDbOptions options;
    options.directory = directory_.path();
    store_ = RocksDbStore::Open(options).value();
  }

 private:
  TempDirectory directory_;
  std::unique_ptr<RocksDbStore> store_;
};

Record Value(RecordKind kind, std::string key, std::string value) {
  return {kind, std::move(key), std::move(value)};
}
Record Delete(RecordKind kind, std::string key) { return {kind, std::move(key), std::nullopt}; }

Batch MakeBatch(uint64_t sequence, std::vector<Record> records = {}) {
  return {
      .sequence = sequence, .records = std::move(records), .log = absl::StrCat("turn ", sequence)};
}

absl::Status AppendOne(Store& store, const Batch& batch) { return store.Append({&batch}); }

// "kind key=value", in the order of Load.
std::vector<std::string> LoadAll(Store& store) {
  std::vector<std::string> found;
  const absl::Status status =
      store.Load([&](RecordKind kind, absl::string_view key, absl::string_view value) {
        found.push_back(absl::StrCat(RecordKindName(kind), " ", key, "=", value));
        return absl::OkStatus();
      });
  REQUIRE(status.ok());
  return found;
}

std::vector<uint64_t> LogOf(const Store& store, uint64_t after, size_t limit = 1000) {
  const auto entries = store.ReadLog(after, limit);
  REQUIRE(entries.ok());
  std::vector<uint64_t> sequences;
  for (const LogEntry& entry : *entries) {
    CHECK(entry.turn == absl::StrCat("turn ", entry.sequence));
    sequences.push_back(entry.sequence);
  }
  return sequences;
}

TEMPLATE_TEST_CASE("a new store is empty", "", MemoryFixture, RocksDbFixture) {
  TestType fixture;
  CHECK(fixture.store().LastSequence() == 0);
  CHECK(LoadAll(fixture.store()).empty());
  CHECK(LogOf(fixture.store(), 0).empty());
  CHECK_FALSE(fixture.store().ClusterId().empty());
  CHECK(absl::IsNotFound(fixture.store().Read(RecordKind::kJobSpec, "x").status()));
  CHECK(fixture.store().TrimLog(5).ok());
  CHECK(fixture.store().Append({}).ok());
}

TEMPLATE_TEST_CASE("appended batches are read back in order, also after reopening", "",
                   MemoryFixture, RocksDbFixture) {
  TestType fixture;
  const std::string cluster = fixture.store().ClusterId();
  const Batch first =
      MakeBatch(1, {Value(RecordKind::kTask, "t2", "a"), Value(RecordKind::kQueue, "q", "b"),
                    Value(RecordKind::kTask, "t1", "c"),
                    Value(RecordKind::kMeta, std::string(kNextIdsKey), "d")});
  const Batch second =
      MakeBatch(2, {Value(RecordKind::kTask, "t1", "e"), Delete(RecordKind::kTask, "t2"),
                    Delete(RecordKind::kTask, "never there"),
                    Value(RecordKind::kRequest, "r", std::string("\0\xff", 2))});
  REQUIRE(fixture.store().Append({&first, &second}).ok());
  for (int i = 0; i < 2; ++i) {
    Store& store = fixture.store();
    CHECK(store.LastSequence() == 2);
    CHECK(store.ClusterId() == cluster);
    CHECK(LoadAll(store) == std::vector<std::string>{"meta next_ids=d", "queue q=b", "task t1=e",
                                                     std::string("request r=\0\xff", 12)});
    CHECK(store.Read(RecordKind::kTask, "t1").value() == "e");
    CHECK(absl::IsNotFound(store.Read(RecordKind::kTask, "t2").status()));
    CHECK(LogOf(store, 0) == std::vector<uint64_t>{1, 2});
    fixture.Reopen();
  }
}

TEMPLATE_TEST_CASE("the last of several records with one key in a batch counts", "", MemoryFixture,
                   RocksDbFixture) {
  TestType fixture;
  REQUIRE(
      AppendOne(fixture.store(),
                MakeBatch(1, {Value(RecordKind::kNode, "n", "a"), Delete(RecordKind::kNode, "n"),
                              Value(RecordKind::kNode, "m", "b"), Delete(RecordKind::kNode, "m"),
                              Value(RecordKind::kNode, "m", "c")}))
          .ok());
  CHECK(LoadAll(fixture.store()) == std::vector<std::string>{"node m=c"});
}

TEMPLATE_TEST_CASE("a gap is refused, and nothing is written", "", MemoryFixture, RocksDbFixture) {
  TestType fixture;
  Store& store = fixture.store();
  const Batch first = MakeBatch(1, {Value(RecordKind::kQueue, "q", "1")});
  const Batch third = MakeBatch(3, {Value(RecordKind::kQueue, "q", "3")});
  CHECK(absl::IsInvalidArgument(store.Append({&first, &third})));
  CHECK(absl::IsInvalidArgument(AppendOne(store, third)));
  CHECK(LoadAll(store).empty());
  REQUIRE(AppendOne(store, first).ok());
  CHECK(absl::IsInvalidArgument(AppendOne(store, first)));  // repeated
  CHECK(absl::IsInvalidArgument(AppendOne(store, third)));
  CHECK(store.LastSequence() == 1);
  CHECK(LogOf(store, 0) == std::vector<uint64_t>{1});
}

TEMPLATE_TEST_CASE("the store's own records cannot be overwritten", "", MemoryFixture,
                   RocksDbFixture) {
  TestType fixture;
  Store& store = fixture.store();
  CHECK(absl::IsInvalidArgument(
      AppendOne(store, MakeBatch(1, {Value(RecordKind::kMeta, std::string(kStoreKey), "x")}))));
  CHECK(absl::IsInvalidArgument(
      AppendOne(store, MakeBatch(1, {Value(RecordKind::kLog, SequenceKey(7), "x")}))));
  CHECK(AppendOne(store, MakeBatch(1)).ok());
}

TEMPLATE_TEST_CASE("Load stops at the visitor's first error", "", MemoryFixture, RocksDbFixture) {
  TestType fixture;
  REQUIRE(AppendOne(fixture.store(), MakeBatch(1, {Value(RecordKind::kTask, "1", ""),
                                                   Value(RecordKind::kTask, "2", "")}))
              .ok());
  int seen = 0;
  const absl::Status status =
      fixture.store().Load([&](RecordKind, absl::string_view, absl::string_view) {
        ++seen;
        return absl::DataLossError("enough");
      });
  CHECK(status.message() == "enough");
  CHECK(seen == 1);
}

TEMPLATE_TEST_CASE("the log is read in pages and ages out", "", MemoryFixture, RocksDbFixture) {
  TestType fixture;
  for (uint64_t i = 1; i <= 10; ++i) REQUIRE(AppendOne(fixture.store(), MakeBatch(i)).ok());
  CHECK(LogOf(fixture.store(), 3, 2) == std::vector<uint64_t>{4, 5});
  CHECK(LogOf(fixture.store(), 0, 0).empty());
  CHECK(LogOf(fixture.store(), 10).empty());
  CHECK(LogOf(fixture.store(), 11).empty());
  REQUIRE(fixture.store().TrimLog(6).ok());
  for (int i = 0; i < 2; ++i) {
    CHECK(LogOf(fixture.store(), 6) == std::vector<uint64_t>{7, 8, 9, 10});
    CHECK(absl::IsOutOfRange(fixture.store().ReadLog(5, 1).status()));
    CHECK(absl::IsOutOfRange(fixture.store().ReadLog(0, 1).status()));
    fixture.Reopen();
  }
  // The last entry always remains: the chain continues from it.
  REQUIRE(fixture.store().TrimLog(100).ok());
  fixture.Reopen();
  CHECK(LogOf(fixture.store(), 9) == std::vector<uint64_t>{10});
  REQUIRE(AppendOne(fixture.store(), MakeBatch(11)).ok());
  fixture.Reopen();
  CHECK(LogOf(fixture.store(), 9) == std::vector<uint64_t>{10, 11});
}

std::vector<std::string> BaseOf(const Store& store, uint64_t sequence) {
  std::vector<std::string> found;
  const absl::Status status = store.LoadBase(
      sequence, [&](RecordKind kind, absl::string_view key, absl::string_view value) {
        found.push_back(absl::StrCat(RecordKindName(kind), " ", key, "=", value));
        return absl::OkStatus();
      });
  INFO(status);
  REQUIRE(status.ok());
  return found;
}

TEMPLATE_TEST_CASE("a base keeps the records of its batch and the log that follows", "",
                   MemoryFixture, RocksDbFixture) {
  TestType fixture;
  const auto append = [&](uint64_t first, uint64_t last) {
    for (uint64_t i = first; i <= last; ++i) {
      const Batch batch = MakeBatch(i, {Value(RecordKind::kNode, "n", absl::StrCat(i)),
                                        Value(RecordKind::kRequest, "r", "answer")});
      REQUIRE(AppendOne(fixture.store(), batch).ok());
    }
  };
  CHECK(fixture.store().Bases().value().empty());
  append(1, 5);
  REQUIRE(fixture.store().KeepBase().value() == 5);
  REQUIRE(fixture.store().KeepBase().value() == 5);
  append(6, 10);
  REQUIRE(fixture.store().KeepBase().value() == 10);
  append(11, 12);
  for (int i = 0; i < 2; ++i) {
    CHECK(fixture.store().Bases().value() == std::vector<uint64_t>{5, 10});
    CHECK(BaseOf(fixture.store(), 5) == std::vector<std::string>{"node n=5"});
    CHECK(BaseOf(fixture.store(), 10) == std::vector<std::string>{"node n=10"});
    fixture.Reopen();
  }
  const auto none = [](RecordKind, absl::string_view, absl::string_view) {
    return absl::OkStatus();
  };
  CHECK(absl::IsNotFound(fixture.store().LoadBase(7, none)));

  REQUIRE(fixture.store().TrimLog(4).ok());  // no base is old enough: the log stays whole
  CHECK(FirstLogged(fixture.store()).value() == 1);
  REQUIRE(fixture.store().TrimLog(9).ok());  // the base at 5 is the newest one that is old enough
  CHECK(FirstLogged(fixture.store()).value() == 6);
  CHECK(fixture.store().Bases().value() == std::vector<uint64_t>{5, 10});
  REQUIRE(fixture.store().TrimLog(12).ok());
  for (int i = 0; i < 2; ++i) {
    CHECK(FirstLogged(fixture.store()).value() == 11);
    CHECK(fixture.store().Bases().value() == std::vector<uint64_t>{10});
    fixture.Reopen();
  }
}

TEMPLATE_TEST_CASE("readers run concurrently with the writer, on whole batches", "", MemoryFixture,
                   RocksDbFixture) {
  TestType fixture;
  Store& store = fixture.store();
  std::atomic<bool> done{false};
  std::atomic<int> torn{0};
  std::thread reader([&] {
    while (!done) {
      const uint64_t last = store.LastSequence();
      if (last == 0) continue;
      const auto value = store.Read(RecordKind::kNode, "n");
      if (!value.ok() || std::stoull(*value) < last) ++torn;
      const auto log = store.ReadLog(last - 1, 1);
      if (!absl::IsOutOfRange(log.status()) && (!log.ok() || log->size() != 1)) ++torn;
    }
  });
  for (uint64_t i = 1; i <= 200; ++i) {
    CHECK(AppendOne(store, MakeBatch(i, {Value(RecordKind::kNode, "n", absl::StrCat(i))})).ok());
    if (i % 50 == 0) CHECK(store.TrimLog(i - 10).ok());
  }
  done = true;
  reader.join();
  CHECK(torn == 0);
}

}  // namespace
}  // namespace berth
