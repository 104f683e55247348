// The hub without gRPC: tests decide when sinks take answers.
#include "server/listeners/watch_hub.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/event.h"
#include "storage/memory/memory_store.h"
#include "storage/turn_recorder.h"
#include "support/errors.h"
#include "support/log.h"
#include "tests/unit/server/loop_world.h"

namespace berth::testing {
namespace {

class FakeSink final : public WatchSink {
 public:
  void Send(v1::WatchResponse response) override { answers.push_back(std::move(response)); }
  void Finish(const absl::Status& status) override { end = status; }
  void Cut(const absl::Status& status) override {
    end = status;
    cut = true;
  }

  // Names of the queues created so far, in order.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& answer : answers) {
      for (const auto& event : answer.events()) names.push_back(event.queue());
    }
    return names;
  }
  std::vector<v1::WatchResponse> answers;
  std::optional<absl::Status> end;
  bool cut = false;
};

// A log in which every turn creates queues.
class HubWorld {
 public:
  explicit HubWorld(WatchOptions options = {}) : hub(&store, &executor, 0, options, &clock) {}

  // One turn that creates `count` queues, stored and published.
  void Turn(int count = 1) {
    recorder.Begin(store.LastSequence() + 1, absl::FromUnixSeconds(1000));
    for (int i = 0; i < count; ++i) {
      QueueSpec spec;
      spec.name = absl::StrCat("q", ++made);
      REQUIRE(recorder
                  .Apply({absl::FromUnixSeconds(1000),
                          QueueCreated{state.next_queue_id(), std::move(spec)}})
                  .ok());
    }
    std::optional<Batch> batch = recorder.Finish();
    REQUIRE(batch.has_value());
    REQUIRE(store.Append({&*batch}).ok());
    hub.OnTurnDurable(batch->sequence, nullptr, std::make_shared<const std::string>(batch->log));
  }

  struct Watcher {
    WatchHub::WatcherId id;
    std::shared_ptr<FakeSink> sink;
  };
  Watcher Watch(uint64_t from, bool queues = true) {
    v1::WatchRequest request;
    request.set_from_revision(from);
    request.set_queues(queues);
    request.set_no_jobs(queues);
    Watcher watcher{hub.NewId(), std::make_shared<FakeSink>()};
    hub.Add(watcher.id, request, watcher.sink);
    return watcher;
  }
  // The watcher takes all answers.
  void Drain(const Watcher& watcher) {
    for (size_t taken = 0; taken != watcher.sink->answers.size();) {
      taken = watcher.sink->answers.size();
      hub.Written(watcher.id);
    }
  }
  std::vector<std::string> AllNames(int from = 1) const {
    std::vector<std::string> names;
    for (int i = from; i <= made; ++i) names.push_back(absl::StrCat("q", i));
    return names;
  }

  FakeClock clock;
  MemoryStore store;
  InlineExecutor executor;
  ClusterState state;
  TurnRecorder recorder{state};
  WatchHub hub;
  int made = 0;
};

}  // namespace

TEST_CASE("watch: from now on, in order, without repetition") {
  HubWorld world;
  world.Turn();
  const auto watcher = world.Watch(0);
  REQUIRE(watcher.sink->answers.size() == 1);
  CHECK(watcher.sink->answers[0].revision() == 1);
  CHECK(watcher.sink->answers[0].events().empty());
  world.Drain(watcher);
  for (int i = 0; i < 3; ++i) {
    world.Turn(2);
    world.Drain(watcher);
  }
  CHECK(watcher.sink->Names() == world.AllNames(2));
  CHECK(watcher.sink->answers.back().revision() == 4);
  CHECK(world.hub.store_reads() == 0);
}

TEST_CASE("watch: resumes from any revision") {
  HubWorld world;
  for (int i = 0; i < 5; ++i) world.Turn();
  for (uint64_t from = 1; from <= 5; ++from) {
    const auto watcher = world.Watch(from);
    world.Drain(watcher);
    CHECK(watcher.sink->Names() == world.AllNames(static_cast<int>(from) + 1));
  }
}

TEST_CASE("watch: a watcher that falls behind catches up from the store and skips nothing") {
  HubWorld world(WatchOptions{.ring_turns = 4});
  const auto slow = world.Watch(0);
  const auto fast = world.Watch(0);
  for (int i = 0; i < 600; ++i) {
    world.Turn();
    world.Drain(fast);
  }
  CHECK(slow.sink->answers.size() == 1);  // still the first: no more were queued for it
  world.Drain(slow);
  CHECK(slow.sink->Names() == world.AllNames());
  CHECK(world.hub.store_reads() > 1);
  CHECK(fast.sink->Names() == world.AllNames());
  world.Turn();
  CHECK(slow.sink->Names() == world.AllNames());
}

TEST_CASE("watch: too old, too new, too many, removed") {
  HubWorld world(WatchOptions{.watchers = 2});
  for (int i = 0; i < 10; ++i) world.Turn();
  REQUIRE(world.store.TrimLog(5).ok());
  CHECK(absl::IsOutOfRange(*world.Watch(4).sink->end));
  CHECK_FALSE(world.Watch(5).sink->end.has_value());
  const absl::Status early = *world.Watch(11).sink->end;
  CHECK(absl::IsOutOfRange(early));
  CHECK(early.message() == "revision 11 does not exist yet; the latest is 10");
  const auto second = world.Watch(0);
  CHECK(absl::IsResourceExhausted(*world.Watch(0).sink->end));
  world.hub.Remove(second.id);
  CHECK(absl::IsCancelled(*second.sink->end));
  const auto third = world.Watch(0);
  CHECK_FALSE(third.sink->end.has_value());
  world.hub.Stop();
  CHECK(absl::IsUnavailable(*third.sink->end));
  CHECK(world.hub.watchers() == 0);
}

TEST_CASE(
    "watch: a watcher that takes no answer for too long is disconnected, and its place is free") {
  HubWorld world(WatchOptions{.watchers = 2, .patience = absl::Minutes(1)});
  const auto slow = world.Watch(0), quick = world.Watch(0);
  world.Drain(quick);
  for (int i = 0; i < 5; ++i) {
    world.clock.Advance(absl::Seconds(10));
    world.Turn();
    world.Drain(quick);
  }
  CHECK_FALSE(slow.sink->end.has_value());
  world.clock.Advance(absl::Seconds(10));
  world.Turn();
  REQUIRE(slow.sink->end.has_value());
  CHECK(absl::IsResourceExhausted(*slow.sink->end));
  CHECK(RetryDelayOf(*slow.sink->end) > absl::ZeroDuration());
  CHECK(slow.sink->cut);
  CHECK(world.hub.watchers() == 1);
  world.Drain(quick);
  CHECK(quick.sink->Names() == world.AllNames());
  // Without a turn, when another watcher needs its place.
  const auto idle = world.Watch(0);
  world.clock.Advance(absl::Minutes(2));
  CHECK_FALSE(world.Watch(0).sink->end.has_value());
  CHECK(idle.sink->cut);
  CHECK_FALSE(quick.sink->end.has_value());
}

TEST_CASE("watch: if the log ages out under a slow watcher, the watch ends and never skips") {
  HubWorld world(WatchOptions{.ring_turns = 2});
  const auto slow = world.Watch(0);
  for (int i = 0; i < 10; ++i) world.Turn();
  REQUIRE(world.store.TrimLog(6).ok());
  world.Drain(slow);
  REQUIRE(slow.sink->end.has_value());
  CHECK(absl::IsOutOfRange(*slow.sink->end));
  CHECK(slow.sink->Names().empty());
}

TEST_CASE("watch: a large revision is sent in parts, and a resume never skips") {
  HubWorld world(WatchOptions{.events_per_answer = 3});
  const auto watcher = world.Watch(0);
  world.Drain(watcher);
  world.Turn(8);
  world.Drain(watcher);
  CHECK(watcher.sink->Names() == world.AllNames());
  REQUIRE(watcher.sink->answers.size() == 4);
  CHECK(watcher.sink->answers[1].revision() == 0);
  CHECK(watcher.sink->answers[2].revision() == 0);
  CHECK(watcher.sink->answers[3].revision() == 1);
}

TEST_CASE("watch: a watcher without matching events receives its progress") {
  HubWorld world(WatchOptions{.progress_revisions = 10});
  const auto watcher = world.Watch(0, false);
  world.Drain(watcher);
  for (int i = 0; i < 25; ++i) {
    world.Turn();
    world.Drain(watcher);
  }
  REQUIRE(watcher.sink->answers.size() == 3);
  CHECK(watcher.sink->answers.back().revision() == 20);
}

}  // namespace berth::testing
