// The outbox: messages that must wait until their batch is durable, in order. Effects and listeners
// run one at a time and without a lock, on whichever thread made them due (the committer's, or the
// loop's if there was nothing to wait for). None of them runs before its batch is durable, and none
// out of order.
#ifndef BERTH_SERVER_LOOP_OUTBOX_H_
#define BERTH_SERVER_LOOP_OUTBOX_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/loop/turn.h"

namespace berth {

// Readers that wait for the disk: maximum number, and patience.
inline constexpr size_t kMaxDurableWaiters = 65536;
inline constexpr absl::Duration kDurablePatience = absl::Seconds(10);
// Of readers that also accept data that is not on disk.
inline constexpr absl::Duration kUnsyncedPatience = absl::Milliseconds(500);

using ReaderEffect = absl::AnyInvocable<void(absl::Status) &&>;

class Outbox {
 public:
  // One turn's messages.
  struct Entry {
    uint64_t revision = 0;
    std::vector<Effect> effects = {};
    std::shared_ptr<const std::vector<Event>> events = nullptr;  // null: the turn changed nothing
    std::shared_ptr<const std::string> turn = nullptr;
  };

  explicit Outbox(uint64_t durable) : durable_(durable) {}
  ~Outbox();

  // Before the first entry.
  void AddListener(DurableListener* listener) { listeners_.push_back(listener); }

  // Loop thread, in revision order. Runs the entry if it is due.
  void Add(Entry entry) ABSL_LOCKS_EXCLUDED(mutex_);
  // All batches up to `revision` are durable. Runs entries that are due.
  void NoteDurable(uint64_t revision) ABSL_LOCKS_EXCLUDED(mutex_);

  // For readers. `effect` gets OK, or UNAVAILABLE after `patience` plus up to a second (Expire), or
  // if too many wait.
  void WhenDurable(uint64_t revision, ReaderEffect effect, absl::Duration patience)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives up on readers that have waited too long. `now` is steady time; call about once a second
  // while anything waits.
  void Expire(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t durable() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Entries not yet delivered.
  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiter {
    ReaderEffect effect;
    absl::Duration patience;
    absl::Duration deadline;  // steady; infinite until Expire first saw it
  };

  void Deliver() ABSL_LOCKS_EXCLUDED(mutex_);
  // The next effect to run, or nullptr. `mine`: this thread is the one that delivers.
  Effect Take(bool mine) ABSL_LOCKS_EXCLUDED(mutex_);
  void Run(Entry entry);

  std::vector<DurableListener*> listeners_;
  mutable absl::Mutex mutex_;
  uint64_t durable_ ABSL_GUARDED_BY(mutex_);
  bool delivering_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::multimap<uint64_t, Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace berth

#endif  // BERTH_SERVER_LOOP_OUTBOX_H_
