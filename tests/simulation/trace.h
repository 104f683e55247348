// The events of a run: a sum over all of them, to compare two runs, and the last ones as text, to
// find out what went wrong.
#ifndef BERTH_TESTS_SIMULATION_TRACE_H_
#define BERTH_TESTS_SIMULATION_TRACE_H_

#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace berth::simulation {

inline constexpr size_t kKeptLines = 400;

class Trace {
 public:
  explicit Trace(bool print) : print_(print) {}

  // `what` must be a literal: only the pointer is kept.
  void Add(absl::Duration now, absl::string_view what, int64_t a = 0, int64_t b = 0,
           int64_t c = 0) {
    Mix(static_cast<uint64_t>(absl::ToInt64Nanoseconds(now)));
    for (const char letter : what) hash_ = (hash_ ^ static_cast<uint8_t>(letter)) * kPrime;
    Mix(static_cast<uint64_t>(a));
    Mix(static_cast<uint64_t>(b));
    Mix(static_cast<uint64_t>(c));
    Keep({now, what, a, b, c, {}});
  }
  void Say(absl::Duration now, absl::string_view what, std::string text) {
    Mix(static_cast<uint64_t>(absl::ToInt64Nanoseconds(now)));
    for (const char letter : text) hash_ = (hash_ ^ static_cast<uint8_t>(letter)) * kPrime;
    Keep({now, what, 0, 0, 0, std::move(text)});
  }

  uint64_t hash() const { return hash_; }
  void PrintLast(std::FILE* out) const {
    for (const Line& line : lines_) std::fputs(Text(line).c_str(), out);
  }

 private:
  static constexpr uint64_t kPrime = 0x100000001b3;
  struct Line {
    absl::Duration at;
    absl::string_view what;
    int64_t a, b, c;
    std::string text;
  };

  void Mix(uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15;
    hash_ ^= hash_ >> 29;
  }
  static std::string Text(const Line& line) {
    const std::string rest =
        line.text.empty() ? absl::StrCat(line.a, " ", line.b, " ", line.c) : line.text;
    return absl::StrFormat("%14.6f %-18s %s\n", absl::ToDoubleSeconds(line.at), line.what, rest);
  }
  void Keep(Line line) {
    if (print_) std::fputs(Text(line).c_str(), stdout);
    lines_.push_back(std::move(line));
    if (lines_.size() > kKeptLines) lines_.pop_front();
  }

  const bool print_;
  uint64_t hash_ = 0xcbf29ce484222325;
  std::deque<Line> lines_;
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_TRACE_H_
