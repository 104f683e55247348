// Simulated time: events ordered by time, then by the order of their scheduling. Single-threaded;
// nothing here reads a clock.
#ifndef BERTH_TESTS_SIMULATION_SCHEDULER_H_
#define BERTH_TESTS_SIMULATION_SCHEDULER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace berth::simulation {

// An actor to which events happen: a process of berthd or of an agent, a machine, a client. Events
// of a dead actor are dropped; events of a paused one happen later, in the same order.
struct Actor {
  bool dead = false;
  absl::Duration paused_until = -absl::InfiniteDuration();
};
using ActorPtr = std::shared_ptr<Actor>;

class Scheduler {
 public:
  using Action = absl::AnyInvocable<void() &&>;

  // Since the start of the simulation.
  absl::Duration now() const { return now_; }

  void At(absl::Duration when, ActorPtr actor, Action action) {
    heap_.push_back({std::max(when, now_), ++sequence_, std::move(actor), std::move(action)});
    std::push_heap(heap_.begin(), heap_.end());
  }
  void After(absl::Duration delay, ActorPtr actor, Action action) {
    At(now_ + delay, std::move(actor), std::move(action));
  }

  // Runs the next event. If there is none up to `limit`, sets the time to it and returns false.
  bool Step(absl::Duration limit) {
    while (!heap_.empty() && heap_.front().at <= limit) {
      std::pop_heap(heap_.begin(), heap_.end());
      Event event = std::move(heap_.back());
      heap_.pop_back();
      now_ = event.at;
      if (event.actor->dead) continue;
      if (event.actor->paused_until > now_) {
        event.at = event.actor->paused_until;
        heap_.push_back(std::move(event));
        std::push_heap(heap_.begin(), heap_.end());
        continue;
      }
      ++steps_;
      std::move(event.action)();
      return true;
    }
    now_ = std::max(now_, limit);
    return false;
  }
  uint64_t steps() const { return steps_; }

 private:
  struct Event {
    absl::Duration at;
    uint64_t sequence = 0;
    ActorPtr actor;
    Action action;
    bool operator<(const Event& other) const {  // the top of the heap is its greatest element
      return at != other.at ? at > other.at : sequence > other.sequence;
    }
  };
  std::vector<Event> heap_;
  absl::Duration now_;
  uint64_t sequence_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_SCHEDULER_H_
