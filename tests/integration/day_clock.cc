// To be preloaded: shifts the time of day by the number of seconds in the file DAY_CLOCK (an int64,
// which may change at any time). Steady clocks are unaffected. libfaketime does the same for other
// programs; it fails with jemalloc, which reads the time before anything is initialized.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

namespace {

const volatile long* Ahead() {
  static const volatile long none = 0;
  static const volatile long* ahead = nullptr;
  if (ahead != nullptr) return ahead;
  const char* path = getenv("DAY_CLOCK");
  const int fd = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  void* at = fd < 0 ? MAP_FAILED : mmap(nullptr, sizeof(long), PROT_READ, MAP_SHARED, fd, 0);
  if (fd >= 0) close(fd);
  if (at == MAP_FAILED) return &none;  // called before the environment exists: retry next time
  ahead = static_cast<const volatile long*>(at);
  return ahead;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const long status = syscall(SYS_clock_gettime, clock, now);
  if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    now->tv_sec += *Ahead();
  return static_cast<int>(status);
}

extern "C" int gettimeofday(timeval* now, void*) noexcept {
  timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

extern "C" time_t time(time_t* now) noexcept {
  timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (now != nullptr) *now = precise.tv_sec;
  return precise.tv_sec;
}
