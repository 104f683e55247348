#include "clients/cli/topology/node_names.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/topology/names.h"
#include "clients/cli/topology/source.h"
#include "support/name_pattern.h"

namespace berth {
namespace {

// A name as text and final number: {"n", 2, 7} is "n07". width 0: no number, or one with too many
// digits.
struct Numbered {
  std::string head;
  size_t width = 0;
  uint64_t number = 0;
};

Numbered SplitNumber(const std::string& name) {
  constexpr size_t kMaxDigits = 15;
  size_t begin = name.size();
  while (begin > 0 && absl::ascii_isdigit(static_cast<unsigned char>(name[begin - 1]))) --begin;
  const size_t width = name.size() - begin;
  Numbered numbered{name.substr(0, begin), width, 0};
  if (width == 0 || width > kMaxDigits || !absl::SimpleAtoi(name.substr(begin), &numbered.number))
    return {name, 0, 0};
  return numbered;
}

bool Follows(const Numbered& earlier, const Numbered& later) {
  return later.width > 0 && earlier.head == later.head && earlier.width == later.width &&
         earlier.number + 1 == later.number;
}

}  // namespace

std::vector<absl::string_view> SplitNameList(absl::string_view list) {
  std::vector<absl::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    parts.push_back(absl::StripAsciiWhitespace(list.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

absl::StatusOr<std::vector<std::string>> NameLists::Expand(absl::string_view list) {
  std::vector<std::string> all;
  for (const absl::string_view part : SplitNameList(list)) {
    auto names = ExpandNamePattern(part);
    if (!names.ok()) return names.status();
    expanded_ += names->size();
    if (expanded_ > kMaxExpandedNames) {
      return absl::InvalidArgumentError(absl::StrCat("the name lists expand to more than the ",
                                                     kMaxExpandedNames,
                                                     " names allowed in one import"));
    }
    std::move(names->begin(), names->end(), std::back_inserter(all));
  }
  return all;
}

absl::StatusOr<std::vector<std::string>> NameLists::ExpandNodes(absl::string_view list) {
  auto names = Expand(list);
  if (!names.ok()) return names.status();
  for (std::string& name : *names) {
    std::string node = NodeNameFrom(name);
    if (node.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", name, "\" cannot be the name of a node (a DNS name)"));
    }
    if (node != name) ++lowered_;
    name = std::move(node);
  }
  return names;
}

std::string NameLists::Warning() const {
  if (lowered_ == 0) return "";
  return absl::StrCat(lowered_, lowered_ == 1 ? " node name has" : " node names have",
                      " capital letters; nodes of Berth have none, so they are converted to lower "
                      "case");
}

std::string NodeNameFrom(absl::string_view text) {
  std::string name = absl::AsciiStrToLower(text);
  return IsDnsName(name) ? name : "";
}

std::vector<std::string> FoldNames(std::vector<std::string> names) {
  const auto key = [](const std::string& name) {
    const Numbered numbered = SplitNumber(name);
    return std::make_tuple(numbered.head, numbered.width, numbered.number);
  };
  std::sort(names.begin(), names.end(),
            [&](const std::string& a, const std::string& b) { return key(a) < key(b); });
  std::vector<std::string> folded;
  for (size_t begin = 0; begin < names.size();) {
    const Numbered first = SplitNumber(names[begin]);
    Numbered last = first;
    size_t end = begin + 1;
    for (; end < names.size(); ++end) {
      const Numbered next = SplitNumber(names[end]);
      if (!Follows(last, next)) break;
      last = next;
    }
    const std::string from = names[begin].substr(first.head.size());
    const std::string to = names[end - 1].substr(first.head.size());
    folded.push_back(end == begin + 1 ? names[begin]
                                      : absl::StrCat(first.head, "[", from, "-", to, "]"));
    begin = end;
  }
  return folded;
}

}  // namespace berth
