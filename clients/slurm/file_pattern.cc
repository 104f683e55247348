#include "clients/slurm/file_pattern.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace berth {
namespace {

constexpr size_t kWidestNumber = 10;
constexpr absl::string_view kLetters = "jJAaxuNsnt";

struct Token {
  size_t end = 0;  // behind it
  size_t width = 0;
  char letter = 0;  // 0: the pattern ends
};

// The token whose '%' is at `at`.
Token TokenAt(absl::string_view pattern, size_t at) {
  Token token{.end = at + 1};
  while (token.end < pattern.size() &&
         absl::ascii_isdigit(static_cast<unsigned char>(pattern[token.end]))) {
    token.width =
        std::min(token.width * 10 + static_cast<size_t>(pattern[token.end] - '0'), kWidestNumber);
    ++token.end;
  }
  if (token.end < pattern.size()) token.letter = pattern[token.end++];
  return token;
}

std::optional<std::string> ValueOf(char letter, const PatternValues& values) {
  switch (letter) {
    case 'j':
      return values.job;
    case 'J':
      return values.step.empty() ? values.job : absl::StrCat(values.job, ".", values.step);
    case 'A':
      return values.array_job;
    case 'a':
      return values.array_index;
    case 'x':
      return values.name;
    case 'u':
      return values.user;
    case 'N':
      return values.host.substr(0, values.host.find('.'));
    case 's':
      return values.step.empty() ? "batch" : values.step;
    case 'n':
      return absl::StrCat(values.node);
    case 't':
      return absl::StrCat(values.task);
    case '%':
      return "%";
    default:
      return std::nullopt;
  }
}

bool IsNumber(absl::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

}  // namespace

namespace {

std::string Expand(absl::string_view pattern, const PatternValues& values, bool for_nodes) {
  if (pattern.find('\\') != absl::string_view::npos)
    return for_nodes ? std::string(pattern) : absl::StrReplaceAll(pattern, {{"\\", ""}});
  std::string text;
  for (size_t at = 0; at < pattern.size();) {
    if (pattern[at] != '%') {
      text += pattern[at++];
      continue;
    }
    const Token token = TokenAt(pattern, at);
    const bool later =
        for_nodes && absl::string_view("ntN%").find(token.letter) != absl::string_view::npos;
    const std::optional<std::string> value = ValueOf(token.letter, values);
    if (later || !value.has_value()) {
      absl::StrAppend(&text, pattern.substr(at, token.end - at));
    } else {
      if (IsNumber(*value) && value->size() < token.width)
        text.append(token.width - value->size(), '0');
      text += for_nodes ? absl::StrReplaceAll(*value, {{"%", "%%"}}) : *value;
    }
    at = token.end;
  }
  return text;
}

}  // namespace

std::string ExpandPattern(absl::string_view pattern, const PatternValues& values) {
  return Expand(pattern, values, /*for_nodes=*/false);
}

std::string ExpandForNodes(absl::string_view pattern, const PatternValues& values) {
  return Expand(pattern, values, /*for_nodes=*/true);
}

absl::Status CheckPattern(absl::string_view pattern) {
  if (pattern.find('\\') != absl::string_view::npos) return absl::OkStatus();
  for (size_t at = pattern.find('%'); at != absl::string_view::npos;) {
    const Token token = TokenAt(pattern, at);
    if (token.letter != '%' && kLetters.find(token.letter) == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", pattern, "\": expected one of %j %J %A %a %x %u %N %n %s %t"));
    }
    at = pattern.find('%', token.end);
  }
  return absl::OkStatus();
}

bool IsPerTask(absl::string_view pattern) {
  if (pattern.find('\\') != absl::string_view::npos) return false;
  for (size_t at = pattern.find('%'); at != absl::string_view::npos;) {
    const Token token = TokenAt(pattern, at);
    if (token.letter == 't' || token.letter == 'n' || token.letter == 'N') return true;
    at = pattern.find('%', token.end);
  }
  return false;
}

}  // namespace berth
