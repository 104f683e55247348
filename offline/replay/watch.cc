#include "offline/replay/watch.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <utility>

#include "absl/strings/str_format.h"
#include "support/visible.h"

namespace berth::replay {
namespace {

volatile std::sig_atomic_t stop_signal = 0;

void NoteSignal(int number) { stop_signal = number; }

void Catch(int number) {
  struct sigaction action {};
  action.sa_handler = NoteSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(number, &action, nullptr);
}

}  // namespace

ErrorWatch::ErrorWatch(bool quiet)
    : quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) == 1),
      next_(Clock::now() + (terminal_ ? std::chrono::seconds(1) : std::chrono::seconds(10))) {
  Catch(SIGINT);
  Catch(SIGTERM);
}

ErrorWatch::~ErrorWatch() {
  Clear();
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

void ErrorWatch::Clear() {
  if (std::exchange(written_, false)) std::fputs("\r\x1b[K", stderr);
}

void ErrorWatch::Begin(std::string what) { what_ = Visible(what); }

void ErrorWatch::Progress(int64_t done, int64_t all) {
  if (quiet_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + (terminal_ ? std::chrono::milliseconds(500) : std::chrono::seconds(10));
  Clear();
  const std::string line = absl::StrFormat("%s: %d of %d jobs", what_, done, all);
  std::fprintf(stderr, terminal_ ? "%s" : "%s\n", line.c_str());
  std::fflush(stderr);
  written_ = terminal_;
}

bool ErrorWatch::stopped() const { return stop_signal != 0; }

int ErrorWatch::signal() { return stop_signal; }

}  // namespace berth::replay
