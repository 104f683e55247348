#include "tests/simulation/ha/history.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace berth::simulation {
namespace {

constexpr int32_t kAbsent = -1;

class Search {
 public:
  explicit Search(const std::vector<Operation>& operations) : operations_(operations) {
    BERTH_CHECK(operations.size() <= 64);
  }
  bool From(uint64_t done, int32_t state) {
    if (!seen_.insert({done, state}).second) return false;
    absl::Duration first_end = absl::InfiniteDuration();
    bool all_answered = true;
    for (size_t i = 0; i < operations_.size(); ++i) {
      if ((done >> i & 1) != 0 || !operations_[i].end.has_value()) continue;
      all_answered = false;
      first_end = std::min(first_end, *operations_[i].end);
    }
    if (all_answered) return true;
    for (size_t i = 0; i < operations_.size(); ++i) {
      // What began after another's end cannot come before it.
      if ((done >> i & 1) != 0 || operations_[i].begin > first_end) continue;
      const std::optional<int32_t> next = After(operations_[i], state);
      if (next.has_value() && From(done | uint64_t{1} << i, *next)) return true;
    }
    return false;
  }

 private:
  // The state after the operation; nullopt: its answer does not fit.
  static std::optional<int32_t> After(const Operation& operation, int32_t state) {
    const bool answered = operation.end.has_value();
    switch (operation.kind) {
      case Operation::Kind::kSubmit:
        return state == kAbsent ? 0 : state;
      case Operation::Kind::kUpdate:
        if (answered && operation.found != (state != kAbsent)) return std::nullopt;
        return state == kAbsent ? state : operation.value;
      case Operation::Kind::kGet:
        if (!answered) return state;
        if (!operation.found) return state == kAbsent ? std::optional(state) : std::nullopt;
        return state == operation.value ? std::optional(state) : std::nullopt;
    }
    return std::nullopt;
  }

  const std::vector<Operation>& operations_;
  std::set<std::pair<uint64_t, int32_t>> seen_;
};

std::string TextOf(const Operation& operation) {
  constexpr const char* kNames[] = {"submit", "update", "get"};
  return absl::StrCat("  ", absl::FormatDuration(operation.begin), " .. ",
                      operation.end.has_value() ? absl::FormatDuration(*operation.end) : "?", "  ",
                      kNames[static_cast<size_t>(operation.kind)], " ",
                      operation.found ? absl::StrCat(operation.value) : "not found", "\n");
}

}  // namespace

std::string CheckHistory(const std::vector<Operation>& operations) {
  if (Search(operations).From(0, kAbsent)) return "";
  std::string text = "no order explains these answers:\n";
  for (const Operation& operation : operations) text += TextOf(operation);
  return text;
}

}  // namespace berth::simulation
