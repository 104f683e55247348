#include "server/planning/selectors.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/check.h"

namespace berth {
namespace {

// Memory for all expressions together: the automaton is built as names need it, and dropped above
// this.
constexpr int64_t kMaxSetBytes = int64_t{64} << 20;

RE2::Options Quiet() {
  RE2::Options options;
  options.set_log_errors(false);
  return options;
}

// "a=1,b=2"
std::vector<std::pair<std::string, std::string>> PairsOf(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    pairs.push_back(pair);
  }
  return pairs;
}

absl::Status CheckLabelText(const std::string& text) {
  std::vector<std::string> keys;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const size_t equals = part.find('=');
    if (equals == 0 || equals == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("must be KEY=VALUE, several joined by ',', is \"", text, "\""));
    }
    keys.emplace_back(part.substr(0, equals));
  }
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice == keys.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("names this label twice: ", *twice));
}

absl::Status CheckRegex(const std::string& text) {
  if (text.size() > kMaxRegexBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("at most ", kMaxRegexBytes, " bytes, has ", text.size()));
  }
  const RE2 expression(text, Quiet());
  if (expression.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is not a valid regular expression: ", expression.error()));
}

}  // namespace

absl::Status CheckSelector(const HyperNodeMember& member) {
  if (member.text.empty()) return absl::InvalidArgumentError("must not be empty");
  switch (member.match) {
    case HyperNodeMember::Match::kExact:
      return absl::OkStatus();
    case HyperNodeMember::Match::kRegex:
      return CheckRegex(member.text);
    case HyperNodeMember::Match::kLabel:
      return CheckLabelText(member.text);
  }
  return absl::OkStatus();
}

void SelectorIndex::Add(HyperNodeId owner, const HyperNodeSpec& spec) {
  for (const HyperNodeMember& member : spec.members) {
    if (member.type != HyperNodeMember::Type::kNode) continue;
    if (member.match == HyperNodeMember::Match::kExact) {
      names_[member.text].push_back(owner);
    } else if (member.match == HyperNodeMember::Match::kRegex) {
      expressions_[member.text].push_back(owner);
    } else {
      std::vector<Pair> pairs = PairsOf(member.text);
      const Pair first = pairs.front();
      pairs.erase(pairs.begin());
      labels_[first.first][first.second].push_back({std::move(pairs), owner});
    }
  }
}

void SelectorIndex::Finish() {
  if (expressions_.empty()) return;
  RE2::Options options = Quiet();
  options.set_max_mem(kMaxSetBytes);
  set_ = std::make_unique<RE2::Set>(options, RE2::ANCHOR_BOTH);
  for (const auto& [text, owners] : expressions_) {
    BERTH_CHECK(set_->Add(text, nullptr) == static_cast<int>(set_owners_.size()));
    set_owners_.push_back(&owners);
  }
  if (set_->Compile()) return;
  set_.reset();
  for (const auto& [text, owners] : expressions_) {
    one_by_one_.push_back(std::make_unique<RE2>(text, Quiet()));
  }
}

void SelectorIndex::Match(const NodeSpec& node, std::vector<HyperNodeId>* owners) const {
  owners->clear();
  if (const auto found = names_.find(node.name); found != names_.end()) *owners = found->second;
  MatchLabels(node, owners);
  if (!expressions_.empty()) MatchExpressions(node.name, owners);
  std::sort(owners->begin(), owners->end());
  owners->erase(std::unique(owners->begin(), owners->end()), owners->end());
}

void SelectorIndex::ForEachName(absl::FunctionRef<void(const std::string&)> visit) const {
  for (const auto& [name, owners] : names_) visit(name);
}

void SelectorIndex::MatchLabels(const NodeSpec& node, std::vector<HyperNodeId>* owners) const {
  if (labels_.empty()) return;
  for (const auto& [key, value] : node.labels) {
    const auto by_value = labels_.find(key);
    if (by_value == labels_.end()) continue;
    const auto found = by_value->second.find(value);
    if (found == by_value->second.end()) continue;
    for (const LabelSelector& selector : found->second) {
      const bool all =
          std::all_of(selector.others.begin(), selector.others.end(), [&](const Pair& other) {
            const auto label = node.labels.find(other.first);
            return label != node.labels.end() && label->second == other.second;
          });
      if (all) owners->push_back(selector.owner);
    }
  }
}

void SelectorIndex::MatchExpressions(const std::string& name,
                                     std::vector<HyperNodeId>* owners) const {
  const auto take = [&](size_t index) {
    const Owners& more = *set_owners_[index];
    owners->insert(owners->end(), more.begin(), more.end());
  };
  for (size_t i = 0; i < one_by_one_.size(); ++i) {
    if (RE2::FullMatch(name, *one_by_one_[i])) take(i);
  }
  if (set_ == nullptr) return;
  std::vector<int> matches;
  RE2::Set::ErrorInfo error;
  if (set_->Match(name, &matches, &error)) {
    for (int index : matches) take(static_cast<size_t>(index));
  } else if (error.kind != RE2::Set::kNoError) {  // not enough memory
    size_t index = 0;
    for (const auto& [text, more] : expressions_) {
      if (RE2::FullMatch(name, RE2(text, Quiet()))) take(index);
      ++index;
    }
  }
}

}  // namespace berth
