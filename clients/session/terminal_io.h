// The terminal on which `berth` runs.
#ifndef BERTH_CLIENTS_SESSION_TERMINAL_IO_H_
#define BERTH_CLIENTS_SESSION_TERMINAL_IO_H_

#include <signal.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/v1/job.pb.h"

namespace berth {

// The size of the terminal on standard input, or on standard output. False: neither is one.
bool WindowSize(v1::TerminalSize* size);

// Puts the terminal on standard input into raw mode during its lifetime: every key is input.
// Signals that end the program restore it first. One at a time.
class RawTerminal {
 public:
  explicit RawTerminal(bool wanted);
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  static constexpr int kSignals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
  bool raw_ = false;
  struct sigaction before_[4] = {};
};

// During its lifetime, Ctrl-C is noted instead of ending the program; the third one ends it. One at
// a time.
class InterruptFlag {
 public:
  InterruptFlag();
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;

  // Whether one came since the last call.
  bool Take();

 private:
  struct sigaction before_ = {};
};

// From now on, Ctrl-C prints the text, of at most 255 bytes, and ends the program with code 130.
void EndOnInterrupt(const std::string& text);

// "ctrl-p,ctrl-q" -> the bytes 0x10 0x11. Names as docker's: a character, or ctrl- with a letter or
// one of @ [ \ ] ^ _. Empty: none.
absl::StatusOr<std::string> ParseDetachKeys(const std::string& text);

// Finds the keys that detach in what somebody types. Keys that only begin like them are held back
// until the next one.
class DetachFilter {
 public:
  explicit DetachFilter(std::string keys) : keys_(std::move(keys)) {}
  // What to pass on. Sets `detach` once all of the keys came in a row; the rest is dropped then.
  std::string Take(absl::string_view typed, bool* detach);

 private:
  const std::string keys_;
  size_t matched_ = 0;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_SESSION_TERMINAL_IO_H_
