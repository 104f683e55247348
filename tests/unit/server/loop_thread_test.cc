// The loop with real threads. Run under ThreadSanitizer as well.
#include "server/loop/loop_thread.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <thread>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "core/engine/policies.h"
#include "server/reads/read_view.h"
#include "storage/memory/memory_store.h"

namespace berth {
namespace {

// Like the real one: a thread that syncs batches in groups and then runs their effects.
class ThreadCommitter final : public Committer {
 public:
  ThreadCommitter(Store* store, absl::Duration sync_time)
      : store_(store), sync_time_(sync_time), thread_([this] { Work(); }) {}
  ~ThreadCommitter() override {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    thread_.join();
  }
  void Commit(Batch batch, absl::AnyInvocable<void() &&> on_durable) override {
    absl::MutexLock lock(&mutex_);
    held_.emplace_back(std::move(batch), std::move(on_durable));
  }
  uint64_t DurableSequence() const override { return store_->LastSequence(); }
  size_t Backlog() const override {
    absl::MutexLock lock(&mutex_);
    return held_.size();
  }
  std::string PausedReason() const override { return ""; }
  size_t syncs() const { return syncs_; }

 private:
  using Held = std::pair<Batch, absl::AnyInvocable<void() &&>>;
  bool Awake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !held_.empty(); }
  void Work() {
    while (true) {
      std::deque<Held> group;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(this, &ThreadCommitter::Awake));
        if (held_.empty()) return;
        group.swap(held_);
      }
      absl::SleepFor(sync_time_);
      ++syncs_;
      for (Held& held : group) {
        if (!store_->Append({&held.first}).ok()) std::abort();
        std::move(held.second)();
      }
    }
  }

  Store* const store_;
  const absl::Duration sync_time_;
  std::atomic<size_t> syncs_{0};
  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Held> held_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

struct Bench {
  explicit Bench(absl::Duration sync_time, absl::Duration window = absl::Milliseconds(1))
      : committer(std::make_unique<ThreadCommitter>(&store, sync_time)),
        loop({.clock = &SystemClock(), .committer = committer.get(), .policies = &policies},
             ClusterState(), 0),
        thread(&loop, &SystemClock(), window) {}
  ~Bench() {
    thread.Stop();
    committer.reset();  // before the loop is destroyed
  }
  MemoryStore store;
  Policies policies = Policies::Default();
  std::unique_ptr<ThreadCommitter> committer;
  Loop loop;
  LoopThread thread;
};

Command CreateQueue(const std::string& name, std::function<void(uint64_t)> durable) {
  return [=](Turn& turn) {
    QueueSpec spec;
    spec.name = name;
    if (!turn.Emit(QueueCreated{turn.state().next_queue_id(), spec}).ok()) std::abort();
    turn.OnDurable([durable, revision = turn.revision()] { durable(revision); });
  };
}

TEST_CASE("loop thread: many threads post and read, each gets one answer, durable and in order") {
  constexpr int kThreads = 4, kEach = 200;
  Bench bench(absl::Microseconds(200));
  std::vector<std::vector<uint64_t>> revisions(kThreads);
  absl::BlockingCounter left(kThreads * kEach);
  std::atomic<int> early{0}, reads{0};
  bench.thread.Start();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const std::string name = "q" + std::to_string(t) + "-" + std::to_string(i);
        absl::Status posted = bench.loop.Post(CreateQueue(name, [&, t](uint64_t revision) {
          if (bench.store.LastSequence() < revision) ++early;
          revisions[static_cast<size_t>(t)].push_back(revision);  // one at a time: no lock
          left.DecrementCount();
        }));
        if (!posted.ok()) std::abort();
        if (i % 10 != 0) continue;
        ReadView view(bench.loop);
        view.Step([](const ClusterState& state) { return state.queues().size(); });
        view.Answer([&, seen = view.revision()](absl::Status status) {
          if (!status.ok() || bench.store.LastSequence() < seen) ++early;
          ++reads;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  left.Wait();
  bench.thread.Stop();
  CHECK(early == 0);
  for (const auto& of_thread : revisions) {
    CHECK(of_thread.size() == kEach);
    CHECK(std::is_sorted(of_thread.begin(), of_thread.end()));
  }
  CHECK(bench.loop.Read([](const ClusterState& state, uint64_t) {
    return state.queues().size();
  }) == kThreads * kEach + 1);
}

TEST_CASE("loop thread: the first command after an idle time does not wait for the window") {
  Bench bench(absl::ZeroDuration(), absl::Milliseconds(100));
  bench.thread.Start();
  for (int i = 0; i < 3; ++i) {
    absl::SleepFor(absl::Milliseconds(5));
    absl::Notification done;
    const absl::Time begin = absl::Now();
    REQUIRE(bench.loop.Post(CreateQueue("q" + std::to_string(i), [&](uint64_t) { done.Notify(); }))
                .ok());
    done.WaitForNotification();
    CHECK(absl::Now() - begin < absl::Milliseconds(90));
  }
}

TEST_CASE("loop thread: bursts share turns while the disk is busy") {
  Bench bench(absl::Milliseconds(5), absl::Milliseconds(100));
  bench.thread.Start();
  constexpr int kCommands = 200;
  absl::BlockingCounter left(kCommands);
  for (int i = 0; i < kCommands; ++i) {
    REQUIRE(
        bench.loop
            .Post(CreateQueue("q" + std::to_string(i), [&](uint64_t) { left.DecrementCount(); }))
            .ok());
    absl::SleepFor(absl::Microseconds(50));
  }
  left.Wait();
  bench.thread.Stop();
  CHECK(bench.committer->syncs() < kCommands / 4);
}

TEST_CASE("loop thread: periodic calls are made, and Stop is prompt when idle") {
  Bench bench(absl::ZeroDuration());
  std::atomic<int> calls{0};
  bench.thread.AddPeriodic(absl::Milliseconds(2), [&] { ++calls; });
  bench.thread.Start();
  while (calls < 3) absl::SleepFor(absl::Milliseconds(1));
  const absl::Time begin = absl::Now();
  bench.thread.Stop();
  CHECK(absl::Now() - begin < absl::Milliseconds(900));
}

}  // namespace
}  // namespace berth
