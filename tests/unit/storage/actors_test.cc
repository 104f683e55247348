// Actors in the log: what a turn records of who caused its events.
#include <catch2/catch.hpp>
#include <string>

#include "berth/store/v1/store.pb.h"
#include "core/access/actor.h"
#include "storage/codec.h"
#include "storage/keys.h"
#include "storage/turn_recorder.h"

namespace berth {
namespace {

const Time kNow = absl::FromUnixSeconds(1'800'000'000);

Actor Ada() {
  return {.kind = Principal::Kind::kUser,
          .name = "ada",
          .door = Door::kIdentity,
          .serial = "0a1b",
          .address = "10.0.0.7:41234",
          .request_id = "r-1",
          .method = "QueueService.CreateQueue",
          .target = "queue/q"};
}

struct Turns {
  ClusterState state;
  TurnRecorder recorder{state};
  uint64_t sequence = 0;

  void Begin(bool log_actors = true) { recorder.Begin(++sequence, kNow, log_actors); }
  void Create(const std::string& name) {
    QueueSpec spec;
    spec.name = name;
    REQUIRE(recorder.Apply({kNow, QueueCreated{state.next_queue_id(), spec}}).ok());
  }
  LoggedTurn Finish() {
    const std::optional<Batch> batch = recorder.Finish();
    REQUIRE(batch.has_value());
    absl::StatusOr<LoggedTurn> turn = DecodeTurn(batch->log);
    REQUIRE(turn.ok());
    return *turn;
  }
};

TEST_CASE("actors: each is logged with the events that it caused") {
  Turns turns;
  turns.Begin();
  turns.Create("before");  // nobody's
  turns.recorder.By(Ada());
  turns.Create("a");
  turns.Create("b");
  turns.recorder.EndActor();
  turns.recorder.By({.kind = Principal::Kind::kNode, .name = "n1", .door = Door::kCertificate});
  turns.recorder.By({.name = "bob", .door = Door::kWithoutTls});
  turns.Create("c");
  turns.recorder.EndActor();
  turns.Create("after");
  const LoggedTurn turn = turns.Finish();
  CHECK(turn.events.size() == 5);
  CHECK(turn.actors ==
        std::vector<ActorRange>{{Ada(), 1, 3}, {{.name = "bob", .door = Door::kWithoutTls}, 3, 4}});
  turns.Begin();
  turns.Create("d");
  CHECK(turns.Finish().actors.empty());
}

TEST_CASE("actors: one who changed only a record is logged, without events") {
  Turns turns;
  turns.Begin();
  turns.recorder.By(Ada());
  turns.recorder.Put({RecordKind::kMeta, std::string(kLeaseKey), "x"});
  const LoggedTurn turn = turns.Finish();
  CHECK(turn.actors == std::vector<ActorRange>{{Ada(), 0, 0}});
}

TEST_CASE("actors: what was undone has no actor, and the cycle does not count it") {
  Turns turns;
  turns.Begin();
  turns.Create("q");
  turns.recorder.By(Ada());
  JobSpec spec;
  spec.name = "j";
  spec.queue = turns.state.FindQueue("q")->id;
  spec.min_available = 1;
  GroupSpec& group = spec.groups.emplace_back();
  group.name = "w";
  group.shape.cpu_millis = 1000;
  const JobId id = turns.state.next_job_id();
  REQUIRE(turns.recorder.Apply({kNow, JobSubmitted{id, spec}}).ok());
  turns.recorder.UndoSubmits(id);
  turns.recorder.EndActor();
  const LoggedTurn turn = turns.Finish();
  CHECK(turn.events.size() == 1);
  CHECK(turn.events_before_cycle == 1);
  CHECK(turn.actors.empty());
}

TEST_CASE("actors: a store of an older format gets none, until a batch upgrades it") {
  Turns turns;
  turns.Begin(false);
  turns.recorder.By(Ada());
  turns.Create("a");
  CHECK(turns.Finish().actors.empty());
  turns.Begin(false);
  turns.recorder.By(Ada());
  turns.recorder.UseNewestFormat();
  CHECK(turns.Finish().actors.size() == 1);
}

TEST_CASE("actors: long texts are cut between characters") {
  Actor long_one = Ada();
  long_one.name = std::string(300, 'n');
  long_one.request_id = std::string(Actor::kMaxText - 1, 'r') + "\u00e9";
  const Actor cut = Bounded(long_one);
  CHECK(cut.name.size() == Actor::kMaxName);
  CHECK(cut.request_id == std::string(Actor::kMaxText - 1, 'r'));
  CHECK(Bounded(Ada()) == Ada());
}

TEST_CASE("actors: ranges beyond the events, and unknown doors, are damage") {
  store::v1::LogTurn turn;
  turn.set_sequence(1);
  turn.mutable_time();
  turn.add_actors()->set_end(1);
  CHECK(absl::IsDataLoss(DecodeTurn(turn.SerializeAsString()).status()));
  turn.mutable_actors(0)->set_end(0);
  CHECK(DecodeTurn(turn.SerializeAsString()).ok());
  turn.mutable_actors(0)->mutable_actor()->set_door(static_cast<store::v1::ActorDoor>(99));
  CHECK(absl::IsDataLoss(DecodeTurn(turn.SerializeAsString()).status()));
}

}  // namespace
}  // namespace berth
