// Members of a cluster with high availability, with a simulated etcd and in simulated time.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/ha/joining.h"
#include "tests/simulation/ha/host.h"

namespace berth::simulation {
namespace {

// Two hosts without faults, and a client that submits a job every second to whoever leads.
class Pair {
 public:
  Pair() {
    MemoryStore first("pair", kStoreFormat, 1);
    SimulatedEtcd::Client operators;
    REQUIRE(BeginGeneration(*etcd_.Connect(&operators), first, 0).ok());
    for (int i = 0; i < 2; ++i) {
      hosts.push_back(std::make_unique<Host>(
          HostOptions{.name = absl::StrCat("h", i)},
          Host::Around{.scheduler = &scheduler_,
                       .horizon = &horizon_,
                       .etcd = &etcd_,
                       .healed = &healed_,
                       .fail = [](const std::string& what) { FAIL(what); },
                       .other_store = [](const Host&) { return nullptr; },
                       .on_durable = [](const Host&, uint64_t, const std::string&) {},
                       .on_event = [](const Host&, const Event&) {}},
          first.Copy(1), 7 + i));
      hosts.back()->Start();
    }
    Submit();
  }
  void Run(absl::Duration time) {
    const absl::Duration end = scheduler_.now() + time;
    while (scheduler_.Step(end)) {
    }
  }
  Host* Leader() {
    for (const auto& host : hosts) {
      if (host->leads()) return host.get();
    }
    return nullptr;
  }
  int answered() const { return answered_; }
  bool IsListed(const Host& host) const {
    return etcd_.Find(ReplicationLayout("pair", 1).Member(host.name())) != nullptr;
  }

  std::vector<std::unique_ptr<Host>> hosts;

 private:
  void Submit() {
    scheduler_.After(absl::Seconds(1), client_, [this] {
      const std::string name = absl::StrCat("j", ++jobs_);
      if (Host* leader = Leader(); leader != nullptr) {
        scheduler_.After(absl::Milliseconds(1), leader->actor(), [this, leader, name] {
          leader->Submit(name, name, [this](const absl::StatusOr<int64_t>& done) {
            answered_ += done.ok() ? 1 : 0;
          });
        });
      }
      Submit();
    });
  }

  Scheduler scheduler_;
  absl::Duration horizon_ = absl::InfiniteDuration();
  const bool healed_ = true;
  SimulatedEtcd etcd_{1};
  ActorPtr client_ = std::make_shared<Actor>();
  int jobs_ = 0, answered_ = 0;
};

TEST_CASE("member: one of two leads, and goes on leading") {
  Pair pair;
  pair.Run(absl::Seconds(20));
  Host* leader = pair.Leader();
  REQUIRE(leader != nullptr);
  const int answered = pair.answered();
  pair.Run(absl::Minutes(5));
  CHECK(pair.Leader() == leader);
  CHECK(pair.answered() >= answered + 295);
  CHECK(pair.hosts[0]->terms_led() + pair.hosts[1]->terms_led() == 1);
}

TEST_CASE("member: a leader whose disk takes nothing resigns, and the other goes on") {
  Pair pair;
  pair.Run(absl::Seconds(20));
  Host* leader = pair.Leader();
  REQUIRE(leader != nullptr);
  leader->SetDiskFull(true);
  pair.Run(absl::Seconds(20));
  REQUIRE(pair.Leader() != nullptr);
  CHECK(pair.Leader() != leader);
  const int answered = pair.answered();
  pair.Run(absl::Seconds(30));
  CHECK(pair.answered() >= answered + 28);
}

TEST_CASE("member: a leader that is cut off from etcd is replaced, and does not resign alone") {
  Pair pair;
  pair.Run(absl::Seconds(20));
  Host* leader = pair.Leader();
  REQUIRE(leader != nullptr);
  leader->etcd().cut = true;
  pair.Run(absl::Seconds(15));
  REQUIRE(pair.Leader() != nullptr);
  Host* other = pair.hosts[0].get() == leader ? pair.hosts[1].get() : pair.hosts[0].get();
  CHECK(other->leads());
  leader->etcd().cut = false;
  pair.Run(absl::Seconds(10));
  CHECK(!leader->leads());
  // Alone, it goes on however long its disk takes nothing: nobody could do better.
  leader->Pause(absl::Hours(1));
  other->SetDiskFull(true);
  pair.Run(absl::Minutes(2));
  CHECK(other->leads());
  other->SetDiskFull(false);
  const int answered = pair.answered();
  pair.Run(absl::Seconds(10));
  CHECK(pair.answered() > answered);
}

TEST_CASE("member: a server that is gone for a day is forgotten, and known again when it is back") {
  Pair pair;
  pair.Run(absl::Seconds(20));
  Host* leader = pair.Leader();
  REQUIRE(leader != nullptr);
  Host* other = pair.hosts[0].get() == leader ? pair.hosts[1].get() : pair.hosts[0].get();
  other->Pause(absl::Hours(24) + absl::Minutes(2));
  pair.Run(absl::Hours(23));
  CHECK(pair.IsListed(*other));
  pair.Run(absl::Hours(1) + absl::Minutes(1));
  CHECK(pair.Leader() == leader);
  CHECK_FALSE(pair.IsListed(*other));
  CHECK(pair.IsListed(*leader));
  pair.Run(absl::Minutes(2));
  CHECK(pair.IsListed(*other));
}

}  // namespace
}  // namespace berth::simulation
