// Confirmer: answers whether this server still led after a question was asked, by a linearizable
// read of etcd that begins after it. One read serves everybody who waits. No clock is involved: a
// server that was stopped for an hour and goes on answers nobody before such a read.
#ifndef BERTH_SERVER_HA_CONFIRMER_H_
#define BERTH_SERVER_HA_CONFIRMER_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/loop/histogram.h"
#include "storage/replication/replicated_log.h"
#include "support/clock.h"

namespace berth {

using LedEffect = absl::AnyInvocable<void(absl::Status) &&>;

// Thread-safe.
class Confirmer {
 public:
  static constexpr size_t kMaxWaiting = 100'000;
  static constexpr absl::Duration kPatience = absl::Seconds(5);

  // `deposed` is called, from Step, when the read shows another term.
  Confirmer(ReplicatedLog* log, Clock* clock, std::function<void(const absl::Status&)> deposed)
      : log_(log), clock_(clock), deposed_(std::move(deposed)) {}
  ~Confirmer();

  // As Leadership::Confirm.
  void Confirm(LedEffect effect) ABSL_LOCKS_EXCLUDED(mutex_);
  void Lead(uint64_t term) ABSL_LOCKS_EXCLUDED(mutex_);
  // Nothing is confirmed any more.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until somebody asks, or for `at_most`. False: stopped.
  bool Await(absl::Duration at_most) ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads once and answers those who asked before. False: nobody waits, or there is no answer.
  bool Step() ABSL_LOCKS_EXCLUDED(mutex_);

  const Histogram& seconds() const { return seconds_; }

 private:
  struct Waiter {
    LedEffect effect;
    absl::Duration asked;  // steady
  };
  static void Answer(std::vector<Waiter> waiters, const absl::Status& status);
  void PutBack(std::vector<Waiter> waiters, absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

  ReplicatedLog* const log_;
  Clock* const clock_;
  const std::function<void(const absl::Status&)> deposed_;
  Histogram seconds_;
  mutable absl::Mutex mutex_;
  uint64_t term_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Waiter> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace berth

#endif  // BERTH_SERVER_HA_CONFIRMER_H_
