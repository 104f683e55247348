#include "tests/fuzz/steps.h"

#include <algorithm>

namespace berth::fuzz {
namespace {

constexpr absl::string_view kBetween = "\n---\n";

Step ReadStep(absl::string_view text) {
  Step step;
  const size_t line = std::min(text.find('\n'), text.size());
  absl::string_view head = text.substr(0, line);
  step.body = text.substr(std::min(line + 1, text.size()));
  if (!head.empty() && head[0] == '@') head.remove_prefix(1);
  const size_t blank = head.find(' ');
  step.name = head.substr(0, blank);
  if (blank != absl::string_view::npos && blank + 1 < head.size()) {
    step.slot = static_cast<uint8_t>(head[blank + 1]) % kSlots;
  }
  return step;
}

}  // namespace

std::vector<Step> ReadSteps(absl::string_view input) {
  std::vector<Step> steps;
  while (!input.empty() && steps.size() < kMostSteps) {
    const size_t end = std::min(input.find(kBetween), input.size());
    steps.push_back(ReadStep(input.substr(0, end)));
    input.remove_prefix(std::min(end + kBetween.size(), input.size()));
  }
  return steps;
}

size_t KindOf(absl::string_view name, size_t count) {
  uint32_t sum = 2166136261u;  // FNV-1a
  for (const char c : name) sum = (sum ^ static_cast<uint8_t>(c)) * 16777619u;
  return sum % count;
}

}  // namespace berth::fuzz
