// ServerChoice: which of several servers is tried next, and whether at once.
//
// One of them leads; the others answer that they do not, and mostly which one does. The one that
// answered last stays the first choice. When it fails, each of the others is tried at once; after
// that, one at a time with a wait before each. A server that names the leader saves the search: the
// leader is tried at once, unless it has just failed. A server that does not answer costs a
// time-out, so it is left out some times.
//
//   a leads b c     a dies: b at once (names a, which has just failed), c at once, wait, b, wait,
//   c,
//                   wait, b: names c, at once: c leads
//
// No IO. Not thread-safe.
#ifndef BERTH_CLIENTS_CPP_SERVER_CHOICE_H_
#define BERTH_CLIENTS_CPP_SERVER_CHOICE_H_

#include <cstddef>
#include <optional>
#include <vector>

namespace berth {

class ServerChoice {
 public:
  explicit ServerChoice(size_t servers) : failed_(servers), left_out_(servers) {}

  size_t size() const { return failed_.size(); }
  size_t current() const { return current_; }
  // It answered as the leader does.
  void Stay();
  // It does not lead, or did not answer. `leader`: which one does, as it says. True: the next one,
  // which is current() now, may be tried at once.
  bool Leave(bool answered, std::optional<size_t> leader);

 private:
  static constexpr int kTimesLeftOut = 3;
  size_t Next();

  size_t current_ = 0;
  bool first_round_ = true;
  std::vector<bool> failed_;   // since the last wait
  std::vector<int> left_out_;  // times that it is still left out
};

}  // namespace berth

#endif  // BERTH_CLIENTS_CPP_SERVER_CHOICE_H_
