// EtcdClient with a real etcd.
#include "storage/etcd/etcd_client.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/etcd/etcd_cluster.h"
#include "tests/unit/storage/etcd/txns.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT
using Catch::Matchers::Contains;

std::unique_ptr<EtcdClient> Connect(EtcdOptions options) {
  auto client = EtcdClient::Create(std::move(options));
  REQUIRE(client.ok());
  return *std::move(client);
}

// With time for machines that are busy.
EtcdOptions OptionsFor(const EtcdCluster& etcd) {
  return {.endpoints = etcd.endpoints(),
          .tls = etcd.tls(),
          .deadline = absl::Seconds(5),
          .write_deadline = absl::Seconds(10)};
}

TEST_CASE("etcd client: endpoints and TLS files must be usable") {
  const auto refused = [](EtcdOptions options) {
    return std::string(EtcdClient::Create(std::move(options)).status().message());
  };
  CHECK(refused({}) == "etcd needs an endpoint");
  CHECK(refused({.endpoints = {"https://a:2379"}}) ==
        "etcd's endpoint https://a:2379 needs TLS files");
  CHECK(refused({.endpoints = {"http://"}}) == "etcd's endpoint \"http://\" is not HOST:PORT");
  CHECK(refused({.endpoints = {"a:2379/path"}}) ==
        "etcd's endpoint \"a:2379/path\" is not HOST:PORT");
  CHECK_THAT(refused({.endpoints = {"a:2379"}, .tls = {"/no/me.pem", "k", "c"}}),
             Contains("cannot read /no/me.pem"));
}

TEST_CASE("etcd client: a transaction that breaks the rules of Kv is refused unsent") {
  const auto client = Connect({.endpoints = {"127.0.0.1:1"}});
  const auto code = [&](const KvTxn& txn) { return client->Commit(txn).status().code(); };
  const auto bad = absl::StatusCode::kInvalidArgument;
  CHECK(code(Do({})) == bad);
  CHECK(code(Do({Get("")})) == bad);
  CHECK(code(Do({Get("b", "a")})) == bad);
  CHECK(code(Do({Get("a", std::string(1, '\0'))})) == bad);
  CHECK(code(Do({Get("a", "", -1)})) == bad);
  CHECK(code(Do({Put("a", std::string(kMaxKvValue + 1, 'x'))})) == bad);
  CHECK(code(Do(std::vector<KvOp>(kMaxKvOps + 1, Get("a")))) == bad);
  CHECK(code(Stale({Put("a", "1")})) == bad);
  CHECK(client->CommitAll({Do({Get("a")}), Do({})}, 2)[1].status().code() == bad);
  CHECK(code(Do({Get("a")})) == absl::StatusCode::kUnavailable);
}

TEST_CASE("etcd client: compares, puts, gets, ranges, deletes and the other branch") {
  if (!EtcdCluster::Available()) return;
  EtcdCluster etcd;
  EtcdOptions options = OptionsFor(etcd);
  options.endpoints[0] = "http://" + options.endpoints[0] + "/";
  const auto client = Connect(options);

  const auto first = client->Commit(
      {.compares = {Created("a", 0)}, .then = {Put("a", "1")}, .otherwise = {Get("a")}});
  REQUIRE(first.ok());
  CHECK(first->held);
  CHECK(Shown(*first) == Texts{""});
  const auto second = client->Commit(
      {.compares = {Created("a", 0)}, .then = {Put("a", "2")}, .otherwise = {Get("a")}});
  REQUIRE(second.ok());
  CHECK_FALSE(second->held);
  CHECK(Shown(*second) == Texts{"a=1"});
  CHECK(second->revision == first->revision);
  CHECK(second->items[0][0].create_revision == first->revision);

  // Operations see those before them.
  const auto third = client->Commit(
      {.compares = {Modified("a", first->revision)},
       .then = {Get("a", "c"), Put("a", "3"), Put("b", "4"), Get("a", "c"), Put("c", "5")}});
  REQUIRE(third.ok());
  CHECK(Shown(*third) == Texts{"a=1", "", "", "a=3 b=4", ""});
  CHECK(third->revision == first->revision + 1);
  CHECK(third->items[3][0].create_revision == first->revision);
  CHECK(third->items[3][0].mod_revision == third->revision);
  REQUIRE(client->Commit(Do({Delete("b"), Get("a", "d")}))->items[1].size() == 2);

  const std::string binary("k\0\xff", 3);
  REQUIRE(client->Commit(Do({Put(binary, binary), Put("d", "")})).ok());
  const auto ranges = client->Commit(
      Do({Get("a", "z"), Get("a", "z", 2), Get("b", "c"), Get("k", "l"), Get("none")}));
  REQUIRE(ranges.ok());
  CHECK(Shown(*ranges) == Texts{absl::StrCat("a=3 c=5 d= ", binary, "=", binary), "a=3 c=5", "",
                                absl::StrCat(binary, "=", binary), ""});
  // What deletes nothing is no write.
  CHECK(client->Commit(Do({Delete("none", "nonf")}))->revision == ranges->revision);
  CHECK(client->Commit(Do({Delete("a", "d")}))->revision == ranges->revision + 1);
  CHECK(Shown(*client->Commit(Stale({Get("a", "e")}))) == Texts{"d="});
  CHECK(absl::IsInvalidArgument(client->Commit(Do({Put("a", "1"), Put("a", "2")})).status()));
  CHECK(absl::IsInvalidArgument(client->Commit(Do({Put("a", "1"), Delete("a", "b")})).status()));
  CHECK(client->revision() == ranges->revision + 1);
  CHECK(client->cluster() != 0);
}

TEST_CASE("etcd client: many transactions on their way at once") {
  if (!EtcdCluster::Available()) return;
  EtcdCluster etcd;
  const auto client = Connect(OptionsFor(etcd));
  std::vector<KvTxn> txns;
  for (int i = 0; i < 200; ++i) {
    const std::string key = absl::StrCat("log/", 1000 + i);
    txns.push_back({.compares = {Created(key, 0)},
                    .then = {Put(key, std::string(64 << 10, static_cast<char>('a' + i % 26)))},
                    .otherwise = {Get(key)}});
  }
  const auto results = client->CommitAll(txns, 8);
  REQUIRE(results.size() == 200);
  for (const auto& result : results) CHECK((result.ok() && result->held));
  const auto again = client->CommitAll(txns, 8);
  for (size_t i = 0; i < again.size(); ++i) {
    REQUIRE((again[i].ok() && !again[i]->held));
    CHECK(again[i]->items[0][0].value == txns[i].then[0].value);
  }
  CHECK(client->CommitAll({}, 8).empty());
}

TEST_CASE("etcd client: old revisions are compacted once") {
  if (!EtcdCluster::Available()) return;
  EtcdCluster etcd;
  const auto client = Connect(OptionsFor(etcd));
  for (int i = 0; i < 10; ++i) REQUIRE(client->Commit(Do({Put("a", absl::StrCat(i))})).ok());
  CHECK(client->Compact(client->revision()).ok());
  CHECK(client->Compact(client->revision()).ok());
  CHECK(client->Compact(2).ok());
  CHECK(absl::IsInvalidArgument(client->Compact(client->revision() + 100)));
  CHECK(Shown(*client->Commit(Do({Get("a")}))) == Texts{"a=9"});
}

TEST_CASE("etcd client: a full etcd refuses, and is repaired") {
  if (!EtcdCluster::Available()) return;
  EtcdCluster etcd({.quota_bytes = 16 << 20});
  const auto client = Connect(OptionsFor(etcd));
  const std::string value(1 << 20, 'x');
  absl::Status status;
  for (int i = 0; i < 40 && status.ok(); ++i) {
    status = client->Commit(Do({Put(absl::StrCat("k/", i), value)})).status();
  }
  CHECK(absl::IsResourceExhausted(status));
  CHECK(absl::IsResourceExhausted(client->CommitAll({Do({Put("a", "1")})}, 8)[0].status()));
  const auto alarms = client->Alarms();
  REQUIRE((alarms.ok() && alarms->size() == 1));
  CHECK((*alarms)[0].kind == EtcdAlarm::Kind::kNoSpace);
  const EtcdMemberStatus full = client->Members()[0];
  CHECK((full.status.ok() && full.leads && full.raft_term > 0 && !full.version.empty()));
  CHECK((full.errors.size() == 1 && absl::StrContains(full.errors[0], "NOSPACE")));
  CHECK(full.bytes > 12 << 20);

  // What repairs it is possible: reads and deletes.
  CHECK(client->Commit(Do({Get("k/1")})).ok());
  REQUIRE(client->Commit(Do({Delete("k/", "k0")})).ok());
  REQUIRE(client->Compact(client->revision()).ok());
  CHECK(absl::IsNotFound(client->Defragment("elsewhere:1")));
  REQUIRE(client->Defragment(full.endpoint).ok());
  CHECK(absl::IsResourceExhausted(client->Commit(Do({Put("a", "1")})).status()));
  REQUIRE(client->DisarmNoSpace().ok());
  CHECK(client->Alarms()->empty());
  CHECK(client->Commit(Do({Put("a", "1")})).ok());
  CHECK(client->Members()[0].bytes < 4 << 20);
  const auto peers = client->Peers();
  REQUIRE((peers.ok() && peers->size() == 1));
  CHECK((*peers)[0].name == "m0");
  CHECK((*peers)[0].member == full.member);
  CHECK((*peers)[0].client_urls == Texts{"http://" + full.endpoint});
}

TEST_CASE("etcd client: an etcd that was restored to an earlier time is refused") {
  if (!EtcdCluster::Available()) return;
  EtcdCluster etcd;
  const auto client = Connect(OptionsFor(etcd));
  REQUIRE(client->Commit(Do({Put("a", "1")})).ok());
  etcd.Kill(0);
  const std::string copy = etcd.data(0) + ".copy";
  std::filesystem::copy(etcd.data(0), copy, std::filesystem::copy_options::recursive);
  etcd.Start(0);
  etcd.Await(0);
  for (int i = 0; i < 5; ++i) REQUIRE(client->Commit(Do({Put("a", "2")})).ok());
  const int64_t seen = client->revision();
  etcd.Kill(0);
  std::filesystem::remove_all(etcd.data(0));
  std::filesystem::rename(copy, etcd.data(0));
  etcd.Start(0);
  etcd.Await(0);

  const absl::Status refused = client->Commit(Do({Get("a")})).status();
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()),
             Contains(absl::StrCat("at revision ", seen - 5, " but was at ", seen)));
  CHECK(absl::IsFailedPrecondition(client->CommitAll({Do({Get("a")})}, 1)[0].status()));
  CHECK(client->Commit(Stale({Get("a")})).ok());  // says nothing of what is newest
  EtcdOptions known = OptionsFor(etcd);
  known.cluster = client->cluster();
  known.least_revision = seen;
  CHECK(absl::IsFailedPrecondition(Connect(known)->Commit(Do({Get("a")})).status()));
}

TEST_CASE("etcd client: another etcd is refused") {
  if (!EtcdCluster::Available()) return;
  EtcdCluster one, other;
  const auto client = Connect(OptionsFor(one));
  REQUIRE(client->Commit(Do({Get("a")})).ok());
  EtcdOptions options = OptionsFor(other);
  options.cluster = client->cluster();
  const auto wrong = Connect(options);
  const absl::Status refused = wrong->Commit(Do({Get("a")})).status();
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()),
             Contains(absl::StrCat("not ", absl::Hex(client->cluster()))));
  CHECK(absl::IsFailedPrecondition(wrong->CommitAll({Do({Get("a")})}, 1)[0].status()));
  CHECK(absl::IsFailedPrecondition(wrong->Compact(1)));
}

TEST_CASE("etcd client: an etcd that is stopped costs the deadline") {
  if (!EtcdCluster::Available()) return;
  EtcdCluster etcd;
  EtcdOptions options = OptionsFor(etcd);
  options.deadline = options.write_deadline = absl::Milliseconds(400);
  const auto client = Connect(options);
  for (int i = 0; i < 20 && !client->Commit(Do({Put("a", "1")})).ok(); ++i) {
  }
  etcd.Pause(0);
  const absl::Time begin = absl::Now();
  CHECK(absl::IsDeadlineExceeded(client->Commit(Do({Put("a", "2")})).status()));
  const absl::Duration one = absl::Now() - begin;
  CHECK(one >= absl::Milliseconds(390));
  CHECK(one < absl::Seconds(3));
  const auto all = client->CommitAll(std::vector<KvTxn>(50, Do({Put("b", "2")})), 8);
  CHECK(absl::Now() - begin < absl::Seconds(6));
  CHECK(absl::IsDeadlineExceeded(all[0].status()));
  CHECK(absl::IsUnavailable(all[49].status()));  // not sent
  etcd.Continue(0);
  etcd.Await(0);
  // It answers again, and what had no answer may have happened.
  CHECK(Connect(OptionsFor(etcd))->Commit(Do({Get("a")})).ok());
}

TEST_CASE("etcd client: an etcd that comes back is found again") {
  if (!EtcdCluster::Available()) return;
  EtcdCluster etcd;
  EtcdOptions options = OptionsFor(etcd);
  const auto client = Connect(options);
  REQUIRE(client->Commit(Do({Put("a", "1")})).ok());
  etcd.Kill(0);
  for (int i = 0; i < 5; ++i) {
    CHECK(absl::IsUnavailable(client->Commit(Do({Put("a", "2")})).status()));
    CHECK(absl::IsUnavailable(client->CommitAll({Do({Put("a", "2")})}, 1)[0].status()));
  }
  etcd.Start(0);
  absl::StatusOr<KvResult> read = absl::UnknownError("");
  for (const absl::Time end = absl::Now() + absl::Seconds(10); !read.ok() && absl::Now() < end;) {
    read = client->Commit(Do({Get("a")}));
  }
  REQUIRE(read.ok());
  CHECK(Shown(*read) == Texts{"a=1"});
}

TEST_CASE("etcd client: one of three members is killed") {
  if (!EtcdCluster::Available()) return;
  EtcdCluster etcd({.members = 3});
  EtcdOptions options = OptionsFor(etcd);
  options.deadline = absl::Milliseconds(400);
  const auto client = Connect(options);
  const auto await = [&](const KvTxn& txn) {
    absl::StatusOr<KvResult> result = client->Commit(txn);
    for (const absl::Time end = absl::Now() + absl::Seconds(20); !result.ok() && absl::Now() < end;
         absl::SleepFor(absl::Milliseconds(20))) {
      result = client->Commit(txn);
    }
    REQUIRE(result.ok());
    return *std::move(result);
  };
  for (size_t dead = 0; dead < 3; ++dead) {
    await(Do({Put("a", absl::StrCat(dead))}));
    etcd.Kill(dead);
    // A write may be in doubt once, or wait for a new leader.
    const std::string key = absl::StrCat("after-", dead);
    await(Do({Put(key, "1")}));
    CHECK(Shown(await(Do({Get(key)}))) == Texts{key + "=1"});
    for (const auto& result : client->CommitAll(std::vector<KvTxn>(20, Do({Put("b", "1")})), 8)) {
      CHECK(result.ok());
    }
    const auto members = client->Members();
    CHECK(members.size() == 3);
    CHECK_FALSE(members[dead].status.ok());
    etcd.Start(dead);
    etcd.Await(dead);
  }
}

TEST_CASE("etcd client: a write goes on to the next endpoint only if it was not sent") {
  if (!EtcdCluster::Available()) return;
  EtcdCluster etcd;
  EtcdOptions options = OptionsFor(etcd);
  options.endpoints.insert(options.endpoints.begin(), "127.0.0.1:1");  // nobody listens
  CHECK(Connect(options)->Commit(Do({Put("a", "1")})).ok());
  const auto client = Connect(options);
  for (const auto& result : client->CommitAll(std::vector<KvTxn>(20, Do({Put("a", "1")})), 4)) {
    CHECK(result.ok());
  }
  CHECK(client->Compact(2).ok());
  CHECK(client->Peers().ok());
  CHECK_FALSE(client->Members()[0].status.ok());
}

TEST_CASE("etcd client: TLS, both ways") {
  if (!EtcdCluster::Available()) return;
  EtcdCluster etcd({.tls = true});
  EtcdOptions options = OptionsFor(etcd);
  CHECK(Connect(options)->Commit(Do({Put("a", "1")})).ok());
  options.endpoints[0] = "https://" + options.endpoints[0];
  CHECK(Connect(options)->Commit(Do({Get("a")})).ok());
  options.endpoints[0] = "http://" + etcd.endpoints()[0];
  CHECK(absl::IsInvalidArgument(EtcdClient::Create(options).status()));
  options.tls = {};
  options.deadline = absl::Milliseconds(500);
  const auto plain = Connect(options);
  const absl::Status refused = plain->Commit(Do({Get("a")})).status();
  CHECK((absl::IsUnavailable(refused) || absl::IsDeadlineExceeded(refused)));
}

}  // namespace
}  // namespace berth
