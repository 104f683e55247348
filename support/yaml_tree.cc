#include "support/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/utf8.h"
#include "support/visible.h"

namespace berth {
namespace {

YamlPosition PositionOf(const YAML::Mark& mark) {
  return mark.is_null() ? YamlPosition{} : YamlPosition{mark.line + 1, mark.column + 1};
}

YamlPosition PositionAt(absl::string_view text, size_t offset) {
  const absl::string_view before = text.substr(0, offset);
  const size_t line_start =
      before.rfind('\n') == absl::string_view::npos ? 0 : before.rfind('\n') + 1;
  return {static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
          static_cast<int>(offset - line_start) + 1};
}

// The position of a tab in the indentation of a line, or after the dash of an item there; (0, 0) if
// there is none.
YamlPosition IndentingTab(absl::string_view text, int line) {
  for (int at = 1; at < line; ++at) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  const absl::string_view indentation = text.substr(0, text.find_first_not_of(" \t-"));
  const size_t tab = indentation.find('\t');
  return tab == absl::string_view::npos ? YamlPosition{}
                                        : YamlPosition{line, static_cast<int>(tab) + 1};
}

// yaml-cpp's message for a tab depends on its context.
void AddSyntaxError(absl::string_view text, const YAML::Exception& exception, YamlErrors* errors) {
  const YamlPosition position = PositionOf(exception.mark);
  for (const int line : {position.line, position.line - 1}) {
    const YamlPosition tab = line > 0 ? IndentingTab(text, line) : YamlPosition{};
    if (tab.line == 0) continue;
    return errors->Add(tab, "a tab; YAML indents with spaces");
  }
  errors->Add(position, exception.msg);
}

// yaml-cpp turns the escapes "\N" (U+0085) and "\_" (U+00A0) into single bytes, which are not
// UTF-8. The surrounding text is.
std::string WithoutBareBytes(absl::string_view value) {
  std::string text;
  for (size_t bad = 0; (bad = FirstBadUtf8(value)) != std::string::npos;) {
    absl::StrAppend(&text, value.substr(0, bad), "\xc2", value.substr(bad, 1));
    value.remove_prefix(bad + 1);
  }
  absl::StrAppend(&text, value);
  return text;
}

// Builds nodes from the parser's events, which include anchors and tags; yaml-cpp's own nodes do
// not.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::vector<YamlNode>* documents, YamlErrors* errors)
      : documents_(*documents), errors_(*errors) {}

  // yaml-cpp does not skip an unexpected token such as a lone ",": it reports an empty document at
  // the same place forever.
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos == document_begin_) throw YAML::ParserException(mark, "unexpected character");
    document_begin_ = mark.pos;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    Add(MakeNode(YamlNode::Kind::kNull, mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    errors_.Add(PositionOf(mark), "aliases (*name) are not supported: write the value out");
    Add(MakeNode(YamlNode::Kind::kNull, mark));
  }
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    errors_.Add(PositionOf(mark),
                absl::StrCat("anchors (&", name, ") are not supported: write the value out"));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    CheckTag(mark, tag);
    YamlNode node = MakeNode(YamlNode::Kind::kScalar, mark);
    node.text = WithoutBareBytes(value);
    node.quoted = tag == "!";
    Add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    CheckTag(mark, tag);
    Open(MakeNode(YamlNode::Kind::kList, mark));
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    CheckTag(mark, tag);
    Open(MakeNode(YamlNode::Kind::kMap, mark));
  }
  void OnMapEnd() override {
    CheckKeys(&open_.back());
    Close();
  }

 private:
  YamlNode MakeNode(YamlNode::Kind kind, const YAML::Mark& mark) {
    if (++nodes_ > kMaxYamlNodes) {
      throw YAML::ParserException(mark,
                                  absl::StrCat("more than ", kMaxYamlNodes, " values in one file"));
    }
    YamlNode node;
    node.kind = kind;
    node.position = PositionOf(mark);
    return node;
  }

  void CheckTag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    errors_.Add(PositionOf(mark), absl::StrCat("tags (", tag, ") are not supported"));
  }

  void Open(YamlNode node) {
    if (open_.size() >= static_cast<size_t>(kMaxYamlDepth)) {
      throw YAML::ParserException(YAML::Mark::null_mark(),
                                  absl::StrCat("nested more than ", kMaxYamlDepth,
                                               " levels deep on line ", node.position.line));
    }
    open_.push_back(std::move(node));
  }

  void Close() {
    YamlNode node = std::move(open_.back());
    open_.pop_back();
    Add(std::move(node));
  }

  void Add(YamlNode node) {
    if (open_.empty()) {
      documents_.push_back(std::move(node));
      return;
    }
    YamlNode& parent = open_.back();
    const bool is_key = parent.is_map() && parent.keys.size() == parent.items.size();
    // yaml-cpp's position of an empty value is the next word; the position of its key is more
    // useful.
    if (node.is_null() && !is_key) {
      node.position = parent.is_map() ? parent.keys.back().position : parent.position;
    }
    (is_key ? parent.keys : parent.items).push_back(std::move(node));
  }

  // Reports and removes entries whose key is not a word or is repeated.
  void CheckKeys(YamlNode* map) {
    absl::flat_hash_map<std::string, int> first_lines;
    size_t kept = 0;
    for (size_t i = 0; i < map->keys.size(); ++i) {
      const YamlNode& key = map->keys[i];
      if (!key.is_scalar()) {
        errors_.Add(key.position, key.is_null() ? "a key is missing" : "a key must be one word");
        continue;
      }
      const auto inserted = first_lines.emplace(key.text, key.position.line);
      if (!inserted.second) {
        errors_.Add(key.position, absl::StrCat("repeated key \"", key.text, "\" (first on line ",
                                               inserted.first->second, ")"));
        continue;
      }
      if (kept != i) {
        map->keys[kept] = std::move(map->keys[i]);
        map->items[kept] = std::move(map->items[i]);
      }
      ++kept;
    }
    map->keys.resize(kept);
    map->items.resize(kept);
  }

  std::vector<YamlNode>& documents_;
  YamlErrors& errors_;
  std::vector<YamlNode> open_;
  size_t nodes_ = 0;
  int document_begin_ = -1;  // of the latest one
};

}  // namespace

const YamlNode* YamlNode::Find(absl::string_view key) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].text == key) return &items[i];
  }
  return nullptr;
}

void YamlErrors::Add(YamlPosition position, absl::string_view text) {
  ++count_;
  errors_.push_back({position, std::string(text)});
  const auto earlier = [](const Error& a, const Error& b) { return a.position < b.position; };
  std::stable_sort(errors_.begin(), errors_.end(), earlier);
  if (errors_.size() > static_cast<size_t>(kMaxYamlErrors)) errors_.pop_back();
}

absl::Status YamlErrors::status() const {
  if (empty()) return absl::OkStatus();
  std::vector<std::string> lines;
  for (const Error& error : errors_) {
    const bool known = error.position.line > 0;
    lines.push_back(known ? absl::StrCat(file_, ":", error.position.line, ":",
                                         error.position.column, ": ", Visible(error.text))
                          : absl::StrCat(file_, ": ", Visible(error.text)));
  }
  const int left_out = count_ - static_cast<int>(errors_.size());
  if (left_out > 0) lines.push_back(absl::StrCat(file_, ": and ", left_out, " more errors"));
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

std::vector<YamlNode> ParseYamlTree(absl::string_view text, YamlErrors* errors) {
  std::vector<YamlNode> documents;
  if (text.size() > kMaxYamlBytes) {
    errors->Add({}, absl::StrCat(text.size(), " bytes; at most ", kMaxYamlBytes, " are allowed"));
    return documents;
  }
  if (const size_t bad = FirstBadUtf8(text); bad != absl::string_view::npos) {
    errors->Add(PositionAt(text, bad), "not UTF-8 text");
    return documents;
  }
  // Outside quotes, yaml-cpp would read a NUL as the start of an escape.
  if (const size_t nul = text.find('\0'); nul != absl::string_view::npos) {
    errors->Add(PositionAt(text, nul), "a NUL byte");
    return documents;
  }
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder(&documents, errors);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& exception) {
    AddSyntaxError(text, exception, errors);
  } catch (const std::exception& exception) {
    errors->Add({}, absl::StrCat("not valid YAML: ", exception.what()));
  }
  return documents;
}

}  // namespace berth
