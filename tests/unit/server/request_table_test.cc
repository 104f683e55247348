#include "server/commands/request_table.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "berth/v1/job.pb.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {
namespace {

class FakeTurn final : public Turn {
 public:
  const ClusterState& state() const override { return state_; }
  Time now() const override { return time; }
  uint64_t revision() const override { return 1; }
  uint64_t seen() const override { return 0; }
  const Policies& policies() const override { return policies_; }
  ClusterState& Trial() override { return state_; }
  absl::Status Emit(EventBody) override { return absl::UnimplementedError(""); }
  Membership& membership() override { return membership_; }
  void UndoSubmits(JobId) override {}
  void By(Actor) override {}
  void LogCommand() override {}
  void Put(Record record) override { records.push_back(std::move(record)); }
  void UseNewestFormat() override {}
  void PutCold(JobId, ColdPart) override {}
  void OnDurable(Effect) override {}

  Time time = absl::FromUnixSeconds(1'000'000);
  std::vector<Record> records;

 private:
  ClusterState state_;
  Membership membership_;
  const Policies policies_ = Policies::Default();
};

}  // namespace

TEST_CASE("requests: the same id and body return the answer, another body is refused") {
  FakeTurn turn;
  RequestTable table;
  CHECK(*table.Find("id", "body", turn.time) == nullptr);
  table.Remember(turn, {"id", "body", turn.time, "answer"});
  REQUIRE(turn.records.size() == 1);
  CHECK(turn.records[0].kind == RecordKind::kRequest);
  CHECK(**table.Find("id", "body", turn.time) == "answer");
  CHECK(absl::IsAlreadyExists(table.Find("id", "other", turn.time).status()));
  // The written records restore the table.
  RequestTable restored;
  restored.Restore(*DecodeRequestRecord(turn.records[0].key, *turn.records[0].value, nullptr));
  CHECK(**restored.Find("id", "body", turn.time) == "answer");
}

TEST_CASE("requests: forgotten after a day, or when there are too many") {
  FakeTurn turn;
  RequestTable table(10);
  for (int i = 0; i < 30; ++i) {
    turn.time += absl::Seconds(1);
    table.Remember(turn, {absl::StrCat("id", i), "body", turn.time, "answer"});
    CHECK(table.size() <= 10);
  }
  CHECK(*table.Find("id19", "body", turn.time) == nullptr);
  CHECK(*table.Find("id20", "body", turn.time) != nullptr);
  turn.time += absl::Hours(25);
  CHECK(*table.Find("id29", "body", turn.time) == nullptr);
  CHECK(table.Find("id29", "other", turn.time).ok());
  // The id is used again; then all old entries expire, and the new one remains.
  table.Remember(turn, {"id29", "other", turn.time, "new"});
  for (int i = 0; i < 5; ++i) table.Remember(turn, {absl::StrCat("n", i), "body", turn.time, "x"});
  CHECK(**table.Find("id29", "other", turn.time) == "new");
  size_t deleted = 0;
  for (const Record& record : turn.records) deleted += record.value.has_value() ? 0 : 1;
  CHECK(deleted >= 20);
}

TEST_CASE("requests: the oldest are forgotten when the responses take too much memory") {
  FakeTurn turn;
  RequestTable table(1000, 10'000);
  for (int i = 0; i < 100; ++i) {
    turn.time += absl::Seconds(1);
    table.Remember(turn, {absl::StrCat("id", i), "body", turn.time, std::string(1000, 'x')});
    CHECK(table.answer_bytes() <= 10'000);
  }
  CHECK(table.size() == 10);
  CHECK(*table.Find("id89", "body", turn.time) == nullptr);
  CHECK(*table.Find("id90", "body", turn.time) != nullptr);
}

TEST_CASE("requests: the fingerprint covers the body but not the order of maps") {
  v1::Job a = SmallJob("a");
  v1::Job b = SmallJob("a");
  for (int i = 0; i < 20; ++i) (*a.mutable_spec()->mutable_labels())[absl::StrCat("k", i)] = "v";
  for (int i = 20; i-- > 0;) (*b.mutable_spec()->mutable_labels())[absl::StrCat("k", i)] = "v";
  CHECK(FingerprintOf("m", a) == FingerprintOf("m", b));
  CHECK(FingerprintOf("m", a) != FingerprintOf("n", a));
  b.set_name("b");
  CHECK(FingerprintOf("m", a) != FingerprintOf("m", b));
}

TEST_CASE("requests: bodies that differ in one byte or in length have different fingerprints") {
  std::set<std::string> seen;
  size_t bodies = 0;
  for (size_t length = 0; length < 40; ++length) {  // zeros: padding of a last, short word
    v1::Job job;
    job.set_etag(std::string(length, '\0'));
    seen.insert(FingerprintOf("m", job));
    ++bodies;
    for (size_t at = 0; at < length; ++at) {
      for (const char other : {'\1', '\2', '\x7f'}) {
        std::string text(length, '\0');
        text[at] = other;
        job.set_etag(text);
        seen.insert(FingerprintOf("m", job));
        ++bodies;
      }
    }
  }
  CHECK(seen.size() == bodies);
}

}  // namespace berth::testing
