// WatchHub: sends watchers every change, in order, from a revision on, without gaps.
//
// A watcher is a position in the log, not a queue: it gets the next turn whenever it can take one.
// Recent turns are still in memory (a bounded ring, kept only while there are watchers). A watcher
// that fell behind, or that resumes from long ago, reads the turns from the store's log and so
// catches up. Memory is bounded by the ring and one response per watcher, however slow the watchers
// are. One that does not read its response within `patience` is cut, to free its place. It may
// resume from the last revision that it received.
#ifndef BERTH_SERVER_LISTENERS_WATCH_HUB_H_
#define BERTH_SERVER_LISTENERS_WATCH_HUB_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "berth/store/v1/store.pb.h"
#include "berth/v1/watch.pb.h"
#include "server/controllers/executor.h"
#include "server/convert/change.h"
#include "server/loop/turn.h"
#include "storage/store.h"
#include "support/clock.h"

namespace berth {

struct WatchOptions {
  size_t watchers = 1000;
  size_t ring_turns = 1024;
  size_t ring_bytes = size_t{16} << 20;  // of encoded turns; decoded they take a few times as much
  int events_per_answer = 10'000;        // a larger revision is split
  uint64_t progress_revisions = 1000;    // a watcher without events gets its progress this often
  absl::Duration patience = absl::Minutes(1);
};

// Takes out of a turn's events what the watcher may not see. `from`: for each, the event of the
// log. Anything but OK ends the watch. On the hub's executor.
using WatchSight =
    std::function<absl::Status(google::protobuf::RepeatedPtrField<v1::ChangeEvent>* events,
                               const std::vector<const store::v1::LogEvent*>& from)>;

// The receiving end of one watcher. Called from the hub's executor, one call at a time.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  // Sends the response; WatchHub::Written reports that the next may come. Must not block.
  virtual void Send(v1::WatchResponse response) = 0;
  // The last call.
  virtual void Finish(const absl::Status& status) = 0;
  // The last call, instead of Finish, if a response is not being read.
  virtual void Cut(const absl::Status& status) { Finish(status); }
};

// Thread-safe: everything happens on the executor, which must run one call at a time.
class WatchHub final : public DurableListener {
 public:
  using WatcherId = uint64_t;

  // `durable`: the last revision at the start. All outlive the hub; the executor is drained before
  // the hub is destroyed.
  WatchHub(const Store* store, Executor* executor, uint64_t durable, WatchOptions options = {},
           Clock* clock = &SystemClock());

  WatcherId NewId() { return next_id_.fetch_add(1); }
  // Begins with a response that carries the first position and no events. Refusals come as Finish:
  // RESOURCE_EXHAUSTED above the limit, OUT_OF_RANGE for a revision that has aged out or not
  // happened.
  void Add(WatcherId id, const v1::WatchRequest& request, std::shared_ptr<WatchSink> sink,
           WatchSight sight = {});
  void Written(WatcherId watcher);
  // The watcher went away: Finish follows, with CANCELLED, unless it was called before.
  void Remove(WatcherId watcher) {
    Remove(watcher, absl::CancelledError("the client disconnected"));
  }
  void Remove(WatcherId watcher, const absl::Status& status);
  // Finishes all watchers and accepts no more.
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
    Watcher(const v1::WatchRequest& request, std::shared_ptr<WatchSink> to, WatchSight what)
        : filter(request), sink(std::move(to)), sight(std::move(what)) {}
    ChangeFilter filter;
    std::shared_ptr<WatchSink> sink;
    WatchSight sight;
    uint64_t position = 0;  // the last revision examined
    uint64_t told = 0;      // the last revision in a response
    bool sending = false;
    absl::Duration sent;            // steady time of the response being sent
    v1::WatchResponse rest;         // of a revision that was too large for one response
    std::deque<RingEntry> history;  // read from the store, not yet examined
  };
  using Watchers = std::map<WatcherId, Watcher>;

  // On the executor:
  void Start(WatcherId id, const v1::WatchRequest& request, std::shared_ptr<WatchSink> sink,
             WatchSight sight);
  void Push(uint64_t revision, const std::string& turn);
  void Advance(WatcherId id);
  // The next response with content, or nullopt if there is none now.
  absl::StatusOr<std::optional<v1::WatchResponse>> NextAnswer(Watcher& watcher);
  absl::StatusOr<Turn> TurnAfter(Watcher& watcher);
  absl::Status ReadHistory(Watcher& watcher);
  void End(WatcherId id, const absl::Status& status);
  void Send(Watcher& watcher, v1::WatchResponse answer);
  // Cuts slow watchers.
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

#endif  // BERTH_SERVER_LISTENERS_WATCH_HUB_H_
