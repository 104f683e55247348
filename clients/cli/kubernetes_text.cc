#include "clients/cli/kubernetes_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace berth {
namespace {

// Of variables.
constexpr char kNameChars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

bool StartsName(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_'; }

// The name in "$(NAME)..."; "" if the text begins otherwise.
absl::string_view ReferredName(absl::string_view text) {
  if (!absl::StartsWith(text, "$(")) return "";
  const size_t end = text.find_first_not_of(kNameChars, 2);
  const bool is_name = end != absl::string_view::npos && end > 2 && text[end] == ')';
  return is_name ? text.substr(2, end - 2) : "";
}

}  // namespace

std::string CommandWord(absl::string_view text, const Variables& variables) {
  std::string out;
  while (!text.empty()) {
    if (const absl::string_view name = ReferredName(text); !name.empty()) {
      const auto known = variables.find(std::string(name));
      absl::StrAppend(&out,
                      known == variables.end() ? absl::StrCat("$(", name, ")") : known->second);
      text.remove_prefix(name.size() + 3);
      continue;
    }
    if (absl::StartsWith(text, "$$")) text.remove_prefix(1);
    const bool reads_as_name =
        text.size() > 1 && text[0] == '$' && (StartsName(text[1]) || text[1] == '{');
    absl::StrAppend(&out, reads_as_name ? "$" : "", text.substr(0, 1));
    text.remove_prefix(1);
  }
  return out;
}

bool RefersToVariable(absl::string_view text, const Variables& variables) {
  while (!text.empty()) {
    if (variables.count(std::string(ReferredName(text))) > 0) return true;
    text.remove_prefix(absl::StartsWith(text, "$$") ? 2 : 1);
  }
  return false;
}

std::string PlainValue(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    out += text[0];
    text.remove_prefix(absl::StartsWith(text, "$$") ? 2 : 1);
  }
  return out;
}

absl::string_view NextName(absl::string_view text, size_t* position) {
  const size_t begin = std::min(text.find_first_of(kNameChars, *position), text.size());
  *position = std::min(text.find_first_not_of(kNameChars, begin), text.size());
  return text.substr(begin, *position - begin);
}

}  // namespace berth
