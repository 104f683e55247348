#include "clients/cli/template.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "support/nearest.h"

namespace berth {
namespace {

constexpr size_t kMaxParameters = 100;
constexpr size_t kMaxDepth = 100;

bool IsName(absl::string_view name) {
  if (name.empty() || name.size() > 63) return false;
  for (char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-') return false;
  }
  return true;
}

class Template {
 public:
  Template(const TemplateValues& values, std::set<std::string>* used, YamlErrors* errors)
      : values_(values), used_(*used), errors_(*errors) {}

  void ReadParameters(const YamlNode* list) {
    if (list == nullptr) return;
    if (!list->is_list() || list->items.size() > kMaxParameters) {
      return errors_.Add(list->position,
                         absl::StrCat("parameters: expected a list of at most ", kMaxParameters));
    }
    for (const YamlNode& entry : list->items) ReadParameter(entry);
  }

  void Fill(YamlNode* node, size_t depth = 0) {
    if (depth > kMaxDepth) return;  // the reader of YAML bounds it, too
    if (node->is_scalar()) node->text = Replaced(*node);
    for (YamlNode& key : node->keys) Fill(&key, depth + 1);
    for (YamlNode& item : node->items) Fill(&item, depth + 1);
  }

 private:
  void ReadParameter(const YamlNode& entry) {
    const YamlNode* name = entry.is_map() ? entry.Find("name") : nullptr;
    if (name == nullptr || !name->is_scalar() || !IsName(name->text)) {
      return errors_.Add(entry.position,
                         "a parameter needs a name of letters, digits, '-' and '_', as in "
                         "{name: rate, default: \"0.1\"}");
    }
    for (const YamlNode& key : entry.keys) {
      if (key.text == "name" || key.text == "default" || key.text == "description") continue;
      errors_.Add(key.position,
                  UnknownWord("unknown key", key.text, {"name", "default", "description"}));
    }
    if (!names_.insert(name->text).second) {
      return errors_.Add(name->position, absl::StrCat("parameter ", name->text, " occurs twice"));
    }
    const YamlNode* standard = entry.Find("default");
    if (standard != nullptr && !standard->is_scalar() && !standard->is_null()) {
      return errors_.Add(standard->position, "default: expected a single value");
    }
    if (const auto given = values_.find(name->text); given != values_.end()) {
      used_.insert(name->text);
      known_[name->text] = given->second;
    } else if (standard != nullptr) {
      known_[name->text] = standard->text;
    } else {
      errors_.Add(entry.position, absl::StrCat("parameter ", name->text,
                                               " has no default: give it a value with --set ",
                                               name->text, "=VALUE"));
    }
  }

  std::string Replaced(const YamlNode& node) {
    std::string out;
    absl::string_view rest = node.text;
    for (;;) {
      const size_t begin = rest.find("{{");
      const size_t end = begin == absl::string_view::npos ? begin : rest.find("}}", begin);
      if (end == absl::string_view::npos) break;
      const absl::string_view name =
          absl::StripAsciiWhitespace(rest.substr(begin + 2, end - begin - 2));
      absl::StrAppend(&out, rest.substr(0, begin));
      if (!IsName(name)) {  // text like any other
        absl::StrAppend(&out, "{{");
        rest.remove_prefix(begin + 2);
        continue;
      }
      const auto known = known_.find(std::string(name));
      if (known != known_.end()) {
        absl::StrAppend(&out, known->second);
      } else if (!names_.contains(std::string(name))) {
        errors_.Add(node.position, UnknownWord("unknown parameter", std::string(name),
                                               {names_.begin(), names_.end()}));
      }
      rest.remove_prefix(end + 2);
    }
    return absl::StrCat(out, rest);
  }

  const TemplateValues& values_;
  std::set<std::string>& used_;
  YamlErrors& errors_;
  std::set<std::string> names_;  // of parameters
  TemplateValues known_;         // of those with a value
};

YamlNode Scalar(const std::string& text, YamlPosition position) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.text = text;
  node.position = position;
  return node;
}

}  // namespace

YamlNode FillTemplate(const YamlNode& document, const TemplateValues& values,
                      std::set<std::string>* used, YamlErrors* errors) {
  for (const YamlNode& key : document.keys) {
    const std::vector<std::string> known = {"apiVersion", "kind", "name",
                                            "parameters", "job",  "description"};
    if (std::find(known.begin(), known.end(), key.text) != known.end()) continue;
    errors->Add(key.position, UnknownWord("unknown key", key.text, known));
  }
  const YamlNode* job = document.Find("job");
  if (job == nullptr || !job->is_map()) {
    errors->Add(document.position, "a Template needs a \"job\", with the keys of a Job");
    return {};
  }
  Template reader(values, used, errors);
  reader.ReadParameters(document.Find("parameters"));
  YamlNode filled = *job;
  reader.Fill(&filled);
  for (const char* key : {"apiVersion", "kind"}) {
    if (filled.Find(key) != nullptr) continue;
    filled.keys.push_back(Scalar(key, job->position));
    filled.items.push_back(Scalar(std::string(key) == "kind" ? "Job" : "berth/v1", job->position));
  }
  return filled;
}

}  // namespace berth
