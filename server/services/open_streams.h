// OpenStreams: calls that last, and end when their caller loses the right to them.
//
// Each stream asks anew whenever the access rules have changed, and every few seconds for its
// certificate, which may expire. Thread-safe.
#ifndef BERTH_SERVER_SERVICES_OPEN_STREAMS_H_
#define BERTH_SERVER_SERVICES_OPEN_STREAMS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "core/model/cluster_state.h"
#include "server/controllers/executor.h"
#include "server/loop/loop.h"

namespace berth {

class OpenStreams final : public DurableListener {
 public:
  // Both may be called after the stream has ended. `may`: under the reader lock; anything but OK
  // ends the stream with it. `end` must not block.
  using May = std::function<absl::Status(const ClusterState&)>;
  using End = std::function<void(const absl::Status&)>;

  // Removes the stream when it is destroyed. Outlived by the OpenStreams.
  class Entry {
   public:
    Entry(OpenStreams* streams, uint64_t id) : streams_(streams), id_(id) {}
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry() { streams_->Remove(id_); }

   private:
    OpenStreams* const streams_;
    const uint64_t id_;
  };

  // All outlive it; the executor is drained before it is destroyed.
  OpenStreams(Loop* loop, Executor* executor) : loop_(loop), executor_(executor) {}

  // From now on a change of the rules ends it. Ask `may` after this: then no change is missed.
  std::unique_ptr<Entry> Add(May may, End end) ABSL_LOCKS_EXCLUDED(mutex_);

  void OnTurnDurable(uint64_t revision, std::shared_ptr<const std::vector<Event>> events,
                     std::shared_ptr<const std::string> turn) override;
  // Asks all streams, on the executor.
  void Recheck();

 private:
  struct Stream {
    uint64_t id;
    May may;
    End end;
  };

  void Remove(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  // The next streams from `from` on, in order; few at a time, because asking holds the reader lock.
  std::vector<Stream> Some(uint64_t from) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Ask() const;

  Loop* const loop_;
  Executor* const executor_;
  mutable absl::Mutex mutex_;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, Stream> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_OPEN_STREAMS_H_
