// Follows the progress of a command, and can stop it.
#ifndef BERTH_OFFLINE_REPLAY_WATCH_H_
#define BERTH_OFFLINE_REPLAY_WATCH_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace berth::replay {

class Watch {
 public:
  virtual ~Watch() = default;
  // Progress of the present work: `done` of `all`. Called very often.
  virtual void Progress(int64_t done, int64_t all) = 0;
  virtual bool stopped() const = 0;
};

// Writes to standard error: on a terminal one line that is overwritten, otherwise a line every ten
// seconds. Prints nothing in the first second, so that short work is silent. The first SIGINT or
// SIGTERM requests a stop; the second one ends the process.
class ErrorWatch : public Watch {
 public:
  // `quiet`: prints no progress.
  explicit ErrorWatch(bool quiet);
  ~ErrorWatch() override;
  ErrorWatch(const ErrorWatch&) = delete;
  ErrorWatch& operator=(const ErrorWatch&) = delete;

  // Sets the title of the work from now on: "easy, seed 3 (2 of 10)".
  void Begin(std::string what);
  void Progress(int64_t done, int64_t all) override;
  bool stopped() const override;
  // The signal that requested a stop; 0: none.
  static int signal();

 private:
  using Clock = std::chrono::steady_clock;
  void Clear();

  const bool quiet_;
  const bool terminal_;
  std::string what_;
  Clock::time_point next_;
  bool written_ = false;  // an unfinished line
};

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_WATCH_H_
