// Reports the operations of absl::Mutex to ThreadSanitizer.
//
// Debian's Abseil is not compiled with ThreadSanitizer, and its Mutex uses system calls directly:
// without help every value that a Mutex guards looks like a race. These definitions are linked only
// into the test programs of the tsan preset. They take precedence over the library's (also for
// calls from other libraries), report to the sanitizer, and call the library. Mangled names are
// spelled out because C++ does not allow a second definition of the methods.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

#define BERTH_MUTEX(method) __asm__("_ZN4absl7debian35Mutex" method)
#define BERTH_CONDVAR(method) __asm__("_ZN4absl7debian37CondVar" method)

namespace {

using absl::Condition;
using absl::CondVar;
using absl::Duration;
using absl::Mutex;
using absl::Time;

template <class Function>
Function* Next(Function* /*like*/, const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) __builtin_trap();
  return reinterpret_cast<Function*>(found);
}

// What the library is doing on this thread for the caller. Calls that the library makes itself are
// not reported again. Conditions that it evaluates (also those of other threads, while unlocking)
// run with the mutex held, although the sanitizer considers it free.
struct Inside {
  explicit Inside(Mutex* m, unsigned f = 0) : mutex(m), flags(f), outer(current) { current = this; }
  ~Inside() { current = outer; }
  Mutex* const mutex;
  const unsigned flags;
  Inside* const outer;
  static thread_local Inside* current;
};
thread_local Inside* Inside::current = nullptr;

bool Reported(Mutex* mutex) {
  return Inside::current != nullptr && Inside::current->mutex == mutex;
}

template <class Call>
auto CallInside(Mutex* mutex, unsigned flags, Call call) {
  Inside inside(mutex, flags);
  return call();
}

template <class Call>
auto Locking(Mutex* mutex, unsigned flags, Call call) {
  if (Reported(mutex)) return call();
  __tsan_mutex_pre_lock(mutex, flags);
  if constexpr (std::is_void_v<decltype(call())>) {
    CallInside(mutex, flags, call);
    __tsan_mutex_post_lock(mutex, flags, 0);
  } else {
    auto result = CallInside(mutex, flags, call);
    __tsan_mutex_post_lock(mutex, flags, 0);
    return result;
  }
}

// Released while waiting, and held again afterwards. One of these methods may call another
// (WaitWithTimeout calls WaitWithDeadline): reported once.
thread_local bool waiting = false;

template <class Call>
auto Waiting(Mutex* mutex, Call call) {
  if (waiting) return call();
  struct Mark {
    Mark() { waiting = true; }
    ~Mark() { waiting = false; }
  } mark;
  if (Reported(mutex)) return call();
  __tsan_mutex_pre_unlock(mutex, 0);
  __tsan_mutex_post_unlock(mutex, 0);
  return Locking(mutex, 0, call);
}

template <class Call>
bool Trying(Mutex* mutex, unsigned flags, Call call) {
  if (Reported(mutex)) return call();
  flags |= __tsan_mutex_try_lock;
  __tsan_mutex_pre_lock(mutex, flags);
  const bool locked = call();
  __tsan_mutex_post_lock(mutex, locked ? flags : flags | __tsan_mutex_try_lock_failed, 0);
  return locked;
}

template <class Call>
void Unlocking(Mutex* mutex, unsigned flags, Call call) {
  if (Reported(mutex)) return call();
  __tsan_mutex_pre_unlock(mutex, flags);
  __tsan_mutex_post_unlock(mutex, flags);
  CallInside(mutex, flags, call);
}

}  // namespace

// One line each: NEXT(function, mangled name) is the library's function.
#define NEXT(function, name) static auto* const next = Next(&function, name)

extern "C" {

void BerthLock(Mutex* mutex) BERTH_MUTEX("4LockEv");
void BerthLock(Mutex* mutex) {
  NEXT(BerthLock, "_ZN4absl7debian35Mutex4LockEv");
  Locking(mutex, 0, [&] { next(mutex); });
}

void BerthUnlock(Mutex* mutex) BERTH_MUTEX("6UnlockEv");
void BerthUnlock(Mutex* mutex) {
  NEXT(BerthUnlock, "_ZN4absl7debian35Mutex6UnlockEv");
  Unlocking(mutex, 0, [&] { next(mutex); });
}

bool BerthTryLock(Mutex* mutex) BERTH_MUTEX("7TryLockEv");
bool BerthTryLock(Mutex* mutex) {
  NEXT(BerthTryLock, "_ZN4absl7debian35Mutex7TryLockEv");
  return Trying(mutex, 0, [&] { return next(mutex); });
}

void BerthReaderLock(Mutex* mutex) BERTH_MUTEX("10ReaderLockEv");
void BerthReaderLock(Mutex* mutex) {
  NEXT(BerthReaderLock, "_ZN4absl7debian35Mutex10ReaderLockEv");
  Locking(mutex, __tsan_mutex_read_lock, [&] { next(mutex); });
}

void BerthReaderUnlock(Mutex* mutex) BERTH_MUTEX("12ReaderUnlockEv");
void BerthReaderUnlock(Mutex* mutex) {
  NEXT(BerthReaderUnlock, "_ZN4absl7debian35Mutex12ReaderUnlockEv");
  Unlocking(mutex, __tsan_mutex_read_lock, [&] { next(mutex); });
}

void BerthLockWhen(Mutex* mutex, const Condition& condition)
    BERTH_MUTEX("8LockWhenERKNS0_9ConditionE");
void BerthLockWhen(Mutex* mutex, const Condition& condition) {
  NEXT(BerthLockWhen, "_ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE");
  Locking(mutex, 0, [&] { next(mutex, condition); });
}

void BerthAwait(Mutex* mutex, const Condition& condition) BERTH_MUTEX("5AwaitERKNS0_9ConditionE");
void BerthAwait(Mutex* mutex, const Condition& condition) {
  NEXT(BerthAwait, "_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE");
  Waiting(mutex, [&] { next(mutex, condition); });
}

bool BerthAwaitWithTimeout(Mutex* mutex, const Condition& condition, Duration timeout)
    BERTH_MUTEX("16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
bool BerthAwaitWithTimeout(Mutex* mutex, const Condition& condition, Duration timeout) {
  NEXT(BerthAwaitWithTimeout,
       "_ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  return Waiting(mutex, [&] { return next(mutex, condition, timeout); });
}

bool BerthAwaitWithDeadline(Mutex* mutex, const Condition& condition, Time deadline)
    BERTH_MUTEX("17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
bool BerthAwaitWithDeadline(Mutex* mutex, const Condition& condition, Time deadline) {
  NEXT(BerthAwaitWithDeadline,
       "_ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  return Waiting(mutex, [&] { return next(mutex, condition, deadline); });
}

bool BerthLockWhenWithTimeout(Mutex* mutex, const Condition& condition, Duration timeout)
    BERTH_MUTEX("19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE");
bool BerthLockWhenWithTimeout(Mutex* mutex, const Condition& condition, Duration timeout) {
  NEXT(BerthLockWhenWithTimeout,
       "_ZN4absl7debian35Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  return Locking(mutex, 0, [&] { return next(mutex, condition, timeout); });
}

bool BerthEval(const Condition* condition) __asm__("_ZNK4absl7debian39Condition4EvalEv");
bool BerthEval(const Condition* condition) {
  NEXT(BerthEval, "_ZNK4absl7debian39Condition4EvalEv");
  const Inside* inside = Inside::current;
  if (inside == nullptr) return next(condition);
  __tsan_mutex_pre_lock(inside->mutex, inside->flags);
  __tsan_mutex_post_lock(inside->mutex, inside->flags, 0);
  const bool result = next(condition);
  __tsan_mutex_pre_unlock(inside->mutex, inside->flags);
  __tsan_mutex_post_unlock(inside->mutex, inside->flags);
  return result;
}

void BerthWait(CondVar* changed, Mutex* mutex) BERTH_CONDVAR("4WaitEPNS0_5MutexE");
void BerthWait(CondVar* changed, Mutex* mutex) {
  NEXT(BerthWait, "_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE");
  Waiting(mutex, [&] { next(changed, mutex); });
}

bool BerthWaitWithTimeout(CondVar* changed, Mutex* mutex, Duration timeout)
    BERTH_CONDVAR("15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
bool BerthWaitWithTimeout(CondVar* changed, Mutex* mutex, Duration timeout) {
  NEXT(BerthWaitWithTimeout,
       "_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  return Waiting(mutex, [&] { return next(changed, mutex, timeout); });
}

bool BerthWaitWithDeadline(CondVar* changed, Mutex* mutex, Time deadline)
    BERTH_CONDVAR("16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
bool BerthWaitWithDeadline(CondVar* changed, Mutex* mutex, Time deadline) {
  NEXT(BerthWaitWithDeadline, "_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  return Waiting(mutex, [&] { return next(changed, mutex, deadline); });
}

void BerthNotify(absl::Notification* notification) __asm__(
    "_ZN4absl7debian312Notification6NotifyEv");
void BerthNotify(absl::Notification* notification) {
  NEXT(BerthNotify, "_ZN4absl7debian312Notification6NotifyEv");
  __tsan_release(notification);
  next(notification);
}

void BerthWaitForNotification(const absl::Notification* notification) __asm__(
    "_ZNK4absl7debian312Notification19WaitForNotificationEv");
void BerthWaitForNotification(const absl::Notification* notification) {
  NEXT(BerthWaitForNotification, "_ZNK4absl7debian312Notification19WaitForNotificationEv");
  next(notification);
  __tsan_acquire(const_cast<absl::Notification*>(notification));
}

}  // extern "C"
