// SimulatedEtcd: its faults one by one, and the same answers as a real etcd without them.
#include "tests/simulation/etcd/simulated_etcd.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "storage/etcd/etcd_client.h"
#include "tests/etcd/etcd_cluster.h"
#include "tests/unit/storage/etcd/txns.h"

namespace berth::simulation {
namespace {

using namespace testing;  // NOLINT

struct World {
  explicit World(uint64_t seed = 1) : etcd(seed) {}
  SimulatedEtcd etcd;
  SimulatedEtcd::Client client;
  std::unique_ptr<Kv> kv = etcd.Connect(&client);
};

// Transactions on eight keys; the compares hold about as often as not.
class RandomTxns {
 public:
  explicit RandomTxns(uint64_t seed) : dice_(seed, 0x74786e73) {}

  KvTxn Next(int64_t revision) {
    KvTxn txn;
    for (uint64_t i = dice_.Below(3); i > 0; --i) {
      const bool create = dice_.Chance(0.5);
      const int64_t compared = dice_.Chance(0.4) ? 0 : dice_.Between(0, revision);
      txn.compares.push_back(create ? Created(Key(), compared) : Modified(Key(), compared));
    }
    for (uint64_t i = dice_.Below(5); i > 0; --i) txn.then.push_back(Op());
    for (uint64_t i = dice_.Below(5); i > 0; --i) txn.otherwise.push_back(Op());
    return txn;
  }
  Dice& dice() { return dice_; }

 private:
  std::string Key() { return std::string(1, static_cast<char>('a' + dice_.Below(8))); }
  KvOp Op() {
    std::string key = Key(), end = dice_.Chance(0.5) ? "" : Key();
    if (!end.empty() && end < key && !dice_.Chance(0.1)) std::swap(key, end);
    switch (dice_.Below(3)) {
      case 0:
        return Get(key, end, static_cast<int64_t>(dice_.Below(4)));
      case 1:
        return Delete(key, end);
      default:
        return Put(key, std::string(dice_.Below(20), 'x'));
    }
  }

  Dice dice_;
};

std::string Text(const absl::StatusOr<KvResult>& result) {
  if (!result.ok()) return absl::StatusCodeToString(result.status().code());
  std::string text = absl::StrCat(result->held, " @", result->revision);
  for (const std::vector<KvItem>& items : result->items) {
    absl::StrAppend(&text, " |");
    for (const KvItem& item : items) {
      absl::StrAppend(&text, " ", item.key, "=", item.value, " ", item.create_revision, "/",
                      item.mod_revision);
    }
  }
  return text;
}

TEST_CASE("simulated etcd: answers as a real one does") {
  if (!EtcdCluster::Available()) return;
  const EtcdCluster cluster;
  const auto real = EtcdClient::Create({.endpoints = cluster.endpoints(),
                                        .deadline = absl::Seconds(10),
                                        .write_deadline = absl::Seconds(10)});
  REQUIRE(real.ok());
  World world;
  RandomTxns txns(7);
  std::map<std::string, int> seen;
  for (int i = 0; i < 3000; ++i) {
    KvTxn txn = txns.Next(world.etcd.revision());
    txn.stale = WritesNothing(txn) && txns.dice().Chance(0.5);
    const auto expected = (*real)->Commit(txn);
    const auto result = world.kv->Commit(txn);
    REQUIRE(Text(result) == Text(expected));
    ++seen[result.ok() ? absl::StrCat("held ", result->held) : Text(result)];
    if (!txns.dice().Chance(0.02)) continue;
    const int64_t revision = txns.dice().Between(1, world.etcd.revision() + 5);
    REQUIRE(world.kv->Compact(revision).code() == (*real)->Compact(revision).code());
  }
  CHECK(seen["held 1"] > 500);
  CHECK(seen["held 0"] > 300);
  CHECK(seen["INVALID_ARGUMENT"] > 300);
}

TEST_CASE("simulated etcd: a lost answer, before or after the write") {
  World world;
  world.client.faults = {.lost_before = 1};
  CHECK(absl::IsUnavailable(world.kv->Commit(Do({Put("a", "1")})).status()));
  CHECK(world.etcd.Find("a") == nullptr);
  world.client.faults = {.lost_after = 1};
  CHECK(absl::IsUnavailable(world.kv->Commit(Do({Put("a", "1")})).status()));
  CHECK(world.etcd.Find("a")->value == "1");
  CHECK(absl::IsUnavailable(world.kv->Commit(Do({Get("a")})).status()));
}

TEST_CASE("simulated etcd: a late write is judged when it happens") {
  int happened = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    World world(seed);
    world.client.faults = {.later = 1};
    const auto late = world.kv->Commit({.compares = {Created("a", 0)}, .then = {Put("a", "late")}});
    CHECK(absl::IsDeadlineExceeded(late.status()));
    CHECK(world.etcd.Find("a") == nullptr);
    world.client.faults = {};
    if (seed % 2 == 0) {  // then its compare does not hold any more
      REQUIRE(world.kv->Commit(Do({Put("a", "first")})).ok());
      world.etcd.DeliverLate();
      CHECK(world.etcd.Find("a")->value == "first");
    } else {
      world.client.faults.delivered = 1;
      happened += static_cast<int>(!world.kv->Commit(Do({Get("a")}))->items[0].empty());
    }
    CHECK(world.etcd.late() == 0);
  }
  CHECK(happened > 10);
  CHECK(happened < 25);  // some never happen
}

TEST_CASE("simulated etcd: stale reads are behind, but never go back") {
  World world;
  world.client.faults = {.behind = 5};
  int behind = 0;
  int64_t newest = 0;
  for (int i = 1; i <= 300; ++i) {
    REQUIRE(world.kv->Commit(Do({Put("a", absl::StrCat(i))})).ok());
    const auto read = world.kv->Commit(Stale({Get("a")}));
    REQUIRE(read.ok());
    CHECK(read->revision >= std::max(newest, world.etcd.revision() - 5));
    if (!read->items[0].empty()) CHECK(read->items[0][0].mod_revision == read->revision);
    newest = read->revision;
    behind += static_cast<int>(newest < world.etcd.revision());
    CHECK(world.kv->Commit(Do({Get("a")}))->revision == world.etcd.revision());
  }
  CHECK(behind > 100);
}

TEST_CASE("simulated etcd: several at once happen in any order, and only some") {
  std::vector<KvTxn> txns;
  for (int i = 0; i < 20; ++i) txns.push_back(Do({Put(absl::StrCat("k", i), "x")}));
  int disordered = 0, partly = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    World world(seed);
    const auto results = world.kv->CommitAll(txns, 8);
    bool ordered = true;
    for (size_t i = 0; i < results.size(); ++i) {
      REQUIRE(results[i].ok());
      ordered &= results[i]->revision == static_cast<int64_t>(i) + 2;
    }
    disordered += static_cast<int>(!ordered);
    World faulty(seed);
    faulty.client.faults = {.lost_before = 0.1, .lost_after = 0.1};
    faulty.kv->CommitAll(txns, 8);
    partly += static_cast<int>(faulty.etcd.revision() > 1 && faulty.etcd.revision() < 21);
  }
  CHECK(disordered == 20);
  CHECK(partly > 10);
}

TEST_CASE("simulated etcd: a client that is cut off, and others who go on meanwhile") {
  World world;
  SimulatedEtcd::Client other;
  const auto others = world.etcd.Connect(&other);
  world.client.between = [&] { REQUIRE(others->Commit(Do({Put("b", "1")})).ok()); };
  CHECK(world.kv->Commit(Do({Get("b")}))->items[0].size() == 1);
  world.client.cut = true;
  CHECK(absl::IsUnavailable(world.kv->Commit(Do({Get("b")})).status()));
  CHECK(absl::IsUnavailable(world.kv->Compact(1)));
  CHECK(others->Commit(Do({Get("b")})).ok());
}

TEST_CASE("simulated etcd: a quota, and how it is repaired") {
  World world;
  world.etcd.quota_bytes = 1000;
  const KvTxn put = Do({Put("a", std::string(99, 'x'))});
  for (int i = 0; i < 10; ++i) REQUIRE(world.kv->Commit(put).ok());
  CHECK(world.etcd.bytes() == 100);
  CHECK(world.etcd.bytes_with_history() == 1000);
  CHECK(absl::IsResourceExhausted(world.kv->Commit(put).status()));
  CHECK(world.kv->Commit(Do({Get("a")})).ok());
  CHECK(world.kv->Commit(Do({Delete("a")})).ok());
  CHECK(world.kv->Compact(world.etcd.revision()).ok());
  CHECK(world.etcd.bytes_with_history() == 0);
  CHECK(absl::IsResourceExhausted(world.kv->Commit(put).status()));  // the alarm
  world.etcd.full = false;
  CHECK(world.kv->Commit(put).ok());
  CHECK(absl::IsInvalidArgument(world.kv->Compact(world.etcd.revision() + 1)));
}

TEST_CASE("simulated etcd: a seed gives the same answers again") {
  const auto run = [](uint64_t seed) {
    World world(seed);
    world.client.faults = {
        .lost_before = 0.1, .lost_after = 0.1, .later = 0.1, .behind = 10, .delivered = 0.1};
    RandomTxns txns(3);
    std::string text;
    for (int i = 0; i < 500; ++i) {
      KvTxn txn = txns.Next(world.etcd.revision());
      txn.stale = WritesNothing(txn);
      absl::StrAppend(&text, Text(world.kv->Commit(txn)), "\n");
    }
    return text;
  };
  CHECK(run(1) == run(1));
  CHECK(run(1) != run(2));
}

}  // namespace
}  // namespace berth::simulation
