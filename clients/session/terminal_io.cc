#include "clients/session/terminal_io.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace berth {
namespace {

constexpr int kEndOfCtrlC = 128 + SIGINT;

// Signal handlers need them.
termios saved_terminal;
volatile sig_atomic_t interrupts = 0;
volatile sig_atomic_t interrupts_taken = 0;

void RestoreAndEnd(int number) {
  tcsetattr(STDIN_FILENO, TCSANOW, &saved_terminal);
  signal(number, SIG_DFL);
  raise(number);
}

void CountInterrupt(int number) {
  interrupts = interrupts + 1;
  if (interrupts < 3) return;
  signal(number, SIG_DFL);
  raise(number);
}

char last_words[256];

void SayAndEnd(int) {
  if (write(STDERR_FILENO, last_words, strlen(last_words)) < 0) _exit(kEndOfCtrlC);
  _exit(kEndOfCtrlC);
}

}  // namespace

void EndOnInterrupt(const std::string& text) {
  text.copy(last_words, sizeof last_words - 1);
  struct sigaction action {};
  action.sa_handler = SayAndEnd;
  sigaction(SIGINT, &action, nullptr);
}

bool WindowSize(v1::TerminalSize* size) {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) {
    winsize window{};
    if (ioctl(fd, TIOCGWINSZ, &window) != 0 || window.ws_row == 0 || window.ws_col == 0) continue;
    size->set_rows(window.ws_row);
    size->set_columns(window.ws_col);
    return true;
  }
  return false;
}

RawTerminal::RawTerminal(bool wanted)
    : raw_(wanted && tcgetattr(STDIN_FILENO, &saved_terminal) == 0) {
  if (!raw_) return;
  struct sigaction action {};
  action.sa_handler = RestoreAndEnd;
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &before_[i]);
  termios raw = saved_terminal;
  cfmakeraw(&raw);
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

RawTerminal::~RawTerminal() {
  if (!raw_) return;
  tcsetattr(STDIN_FILENO, TCSADRAIN, &saved_terminal);
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

InterruptFlag::InterruptFlag() {
  interrupts = 0;
  interrupts_taken = 0;
  struct sigaction action {};
  action.sa_handler = CountInterrupt;
  sigaction(SIGINT, &action, &before_);
}

InterruptFlag::~InterruptFlag() { sigaction(SIGINT, &before_, nullptr); }

bool InterruptFlag::Take() {
  const sig_atomic_t now = interrupts;
  return now != std::exchange(interrupts_taken, now);
}

absl::StatusOr<std::string> ParseDetachKeys(const std::string& text) {
  std::string keys;
  if (text.empty()) return keys;
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    if (name.size() == 1 && absl::ascii_isprint(static_cast<unsigned char>(name[0]))) {
      keys.push_back(name[0]);
      continue;
    }
    const char letter = absl::StartsWith(name, "ctrl-") && name.size() == 6
                            ? absl::ascii_toupper(static_cast<unsigned char>(name[5]))
                            : '\0';
    if (letter < '@' || letter > '_') {
      return absl::InvalidArgumentError(absl::StrCat(
          "expected keys with commas between, such as ctrl-p,ctrl-q, got \"", text, "\""));
    }
    keys.push_back(static_cast<char>(letter - '@'));
  }
  return keys;
}

// The keys are few and mostly different: after a mismatch, only the key itself may begin them
// again.
std::string DetachFilter::Take(absl::string_view typed, bool* detach) {
  if (keys_.empty()) return std::string(typed);
  std::string out;
  for (const char key : typed) {
    if (key != keys_[matched_]) {
      out.append(keys_, 0, matched_);
      matched_ = 0;
    }
    if (key != keys_[matched_]) {
      out.push_back(key);
    } else if (++matched_ == keys_.size()) {
      matched_ = 0;
      *detach = true;
      return out;
    }
  }
  return out;
}

}  // namespace berth
