// What looks on while a command works: it is told how far the work has come, and says when to stop.
#ifndef BERTH_CLIENTS_REPLAY_WATCH_H_
#define BERTH_CLIENTS_REPLAY_WATCH_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace berth::replay {

class Watch {
 public:
  virtual ~Watch() = default;
  // Of what is under way, so much is done. Called very often.
  virtual void Progress(int64_t done, int64_t all) = 0;
  virtual bool stopped() const = 0;
};

// Writes to standard error: on a terminal a line that is written again and again, elsewhere a line
// every ten seconds. Nothing in the first second, so that short work is silent. SIGINT and SIGTERM
// ask to stop, once; the second one ends the process.
class ErrorWatch : public Watch {
 public:
  // `quiet`: without progress.
  explicit ErrorWatch(bool quiet);
  ~ErrorWatch() override;
  ErrorWatch(const ErrorWatch&) = delete;
  ErrorWatch& operator=(const ErrorWatch&) = delete;

  // What is under way from now on: "easy, seed 3 (2 of 10)".
  void Begin(std::string what);
  void Progress(int64_t done, int64_t all) override;
  bool stopped() const override;
  // Which signal asked to stop; 0: none.
  static int signal();

 private:
  using Clock = std::chrono::steady_clock;
  void Clear();

  const bool quiet_;
  const bool terminal_;
  std::string what_;
  Clock::time_point next_;
  bool written_ = false;  // a line that is not ended
};

}  // namespace berth::replay

#endif  // BERTH_CLIENTS_REPLAY_WATCH_H_
