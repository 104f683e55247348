// WatchHub: tells watchers every change, in order, from a revision on, and skips none.
//
// A watcher is a position in the log, not a queue: it is sent the next turn whenever it can take
// one. Turns that are young are still in memory (a bounded ring, kept only while somebody watches);
// a watcher that fell behind, or that resumes from long ago, reads them from the store's log and so
// catches up. Memory is bounded by the ring and one answer per watcher, however slow the watchers
// are; one that does not take its answer within `patience` is cut, so that others may have its
// place. It may resume from the revision that it knows.
#ifndef BERTH_SERVER_WATCH_HUB_H_
#define BERTH_SERVER_WATCH_HUB_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "berth/store/v1/store.pb.h"
#include "berth/v1/watch.pb.h"
#include "server/controllers/executor.h"
#include "server/convert_change.h"
#include "server/turn.h"
#include "storage/store.h"
#include "support/clock.h"

namespace berth {

struct WatchOptions {
  size_t watchers = 1000;
  size_t ring_turns = 1024;
  size_t ring_bytes = size_t{16} << 20;  // of encoded turns; decoded they take a few times as much
  int events_per_answer = 10'000;        // a larger revision comes in parts
  uint64_t progress_revisions = 1000;    // a watcher that sees nothing is told how far it is
  absl::Duration patience = absl::Minutes(1);
};

// The receiving end of one watcher. Called from the hub's executor, one call at a time.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  // Takes the answer; WatchHub::Written says that the next may come. Must not block.
  virtual void Send(v1::WatchResponse response) = 0;
  // The last call.
  virtual void Finish(const absl::Status& status) = 0;
  // The last call, instead of Finish, while an answer is not taken.
  virtual void Cut(const absl::Status& status) { Finish(status); }
};

// Thread-safe: everything happens on the executor, which must run one call at a time.
class WatchHub final : public DurableListener {
 public:
  using WatcherId = uint64_t;

  // `durable`: the last revision at the start. All outlive the hub; the executor is drained before
  // the hub goes.
  WatchHub(const Store* store, Executor* executor, uint64_t durable, WatchOptions options = {},
           Clock* clock = &SystemClock());

  WatcherId NewId() { return next_id_.fetch_add(1); }
  // Begins with an answer that carries the first position and no events. Refusals come as Finish:
  // RESOURCE_EXHAUSTED above the limit, OUT_OF_RANGE for a revision that has aged out or not
  // happened.
  void Add(WatcherId id, const v1::WatchRequest& request, std::shared_ptr<WatchSink> sink);
  void Written(WatcherId watcher);
  // The watcher went away: Finish follows, with CANCELLED, unless it was called before.
  void Remove(WatcherId watcher);
  // Finishes all watchers and takes no more.
  void Stop();

  void OnTurnDurable(uint64_t revision, std::shared_ptr<const std::vector<Event>> events,
                     std::shared_ptr<const std::string> turn) override;

  size_t watchers() const { return count_.load(); }
  uint64_t store_reads() const { return store_reads_.load(); }

 private:
  using Turn = std::shared_ptr<const store::v1::LogTurn>;
  struct RingEntry {
    uint64_t revision = 0;
    size_t bytes = 0;
    Turn turn;
  };
  struct Watcher {
    Watcher(const v1::WatchRequest& request, std::shared_ptr<WatchSink> to)
        : filter(request), sink(std::move(to)) {}
    ChangeFilter filter;
    std::shared_ptr<WatchSink> sink;
    uint64_t position = 0;  // the last revision looked at
    uint64_t told = 0;      // the last revision in an answer
    bool sending = false;
    absl::Duration sent;            // when, on the steady clock; while sending
    v1::WatchResponse rest;         // of a revision that was too large for one answer
    std::deque<RingEntry> history;  // read from the store, not yet looked at
  };
  using Watchers = std::map<WatcherId, Watcher>;

  // On the executor:
  void Start(WatcherId id, const v1::WatchRequest& request, std::shared_ptr<WatchSink> sink);
  void Push(uint64_t revision, const std::string& turn);
  void Advance(WatcherId id);
  // The next answer that has something to tell, or nullopt if there is none now.
  absl::StatusOr<std::optional<v1::WatchResponse>> NextAnswer(Watcher& watcher);
  absl::StatusOr<Turn> TurnAfter(Watcher& watcher);
  absl::Status ReadHistory(Watcher& watcher);
  void End(WatcherId id, const absl::Status& status);
  void Send(Watcher& watcher, v1::WatchResponse answer);
  // Cuts who takes too long.
  void CutSlow();

  const Store* const store_;
  Executor* const executor_;
  const WatchOptions options_;
  Clock* const clock_;
  std::atomic<uint64_t> next_id_{1};
  std::atomic<size_t> count_{0};
  std::atomic<uint64_t> store_reads_{0};

  // Executor only.
  uint64_t latest_;
  bool stopped_ = false;
  Watchers watchers_;
  std::deque<RingEntry> ring_;  // without gaps, up to latest_
  size_t ring_bytes_ = 0;
};

}  // namespace berth

#endif  // BERTH_SERVER_WATCH_HUB_H_
