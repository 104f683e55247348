#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "berth/volcano/v1/manifests.pb.h"
#include "clients/cli/volcano.h"

namespace berth {
namespace {

constexpr size_t kMaxCombinations = 64;  // of the expressions of one selector

class HyperNodeConverter {
 public:
  HyperNodeConverter(const volcano::v1::HyperNode& in, const YamlPositions& source,
                     YamlErrors* errors, YamlErrors* warnings, Manifest* out)
      : in_(in), source_(source), errors_(*errors), warnings_(*warnings), out_(*out) {}

  void Convert() {
    v1::HyperNodeSpec& spec = *out_.hyper_node.mutable_spec();
    out_.hyper_node.set_name(in_.metadata().name());
    if (in_.metadata().name().empty()) Error("metadata.name", "\"metadata.name\" is missing");
    for (const auto& [key, there] :
         {std::pair("namespace", !in_.metadata().namespace_().empty()),
          std::pair("labels", !in_.metadata().labels().empty()),
          std::pair("annotations", !in_.metadata().annotations().empty())}) {
      if (there)
        Warn(absl::StrCat("metadata.", key),
             absl::StrCat(key, " is left out: HyperNodes have none"));
    }
    if (!in_.spec().has_tier()) Error("spec", "\"spec.tier\" is missing");
    spec.set_tier(BerthTier(in_.spec().tier()));
    spec.set_tier_name(in_.spec().tier_name());
    Place("name", "metadata.name");
    for (const char* key : {"spec.tier", "spec.tier_name", "spec.members"}) Place(key, key);
    for (int i = 0; i < in_.spec().members_size(); ++i) {
      ConvertMember(absl::StrCat("spec.members[", i, "]"), in_.spec().members(i), &spec);
    }
  }

 private:
  using Member = v1::HyperNodeSpec::Member;

  void Error(const std::string& path, const std::string& text) {
    errors_.Add(FindPosition(source_, path, out_.position), text);
  }
  void Warn(const std::string& path, const std::string& text) {
    warnings_.Add(FindPosition(source_, path, out_.position), text);
  }
  void Place(const std::string& berth_path, const std::string& volcano_path) {
    out_.positions[berth_path] = FindPosition(source_, volcano_path, out_.position);
  }

  // One of Volcano's members may become several of Berth's.
  Member* Add(const std::string& path, Member::Type type, v1::HyperNodeSpec* spec) {
    Place(absl::StrCat("spec.members[", spec->members_size(), "]"), path);
    Member* member = spec->add_members();
    member->set_type(type);
    return member;
  }

  void ConvertMember(const std::string& path, const volcano::v1::Member& in,
                     v1::HyperNodeSpec* spec) {
    if (in.type() != "Node" && in.type() != "HyperNode") {
      return Error(path + ".type",
                   absl::StrCat("type \"", in.type(), "\" is not Node or HyperNode"));
    }
    const volcano::v1::MemberSelector& selector = in.selector();
    const std::string at = path + ".selector";
    const int given =
        selector.has_exact_match() + selector.has_regex_match() + selector.has_label_match();
    if (given != 1) {
      return Error(given == 0 ? path : at,
                   "a member needs one of exactMatch, regexMatch and labelMatch");
    }
    if (in.type() == "HyperNode") {
      if (!selector.has_exact_match()) {
        return Error(at, "Berth takes HyperNodes as members by exactMatch only");
      }
      return Add(path, Member::HYPER_NODE, spec)->set_exact(selector.exact_match().name());
    }
    if (selector.has_exact_match()) {
      Add(path, Member::NODE, spec)->set_exact(selector.exact_match().name());
    } else if (selector.has_regex_match()) {
      Add(path, Member::NODE, spec)->set_regex(WholeNameRegex(selector.regex_match().pattern()));
    } else {
      ConvertLabels(path, at + ".label_match", selector.label_match(), spec);
    }
  }

  // Adds a member for each combination: rack In (a, b), row In (1) is rack=a,row=1 and
  // rack=b,row=1.
  void ConvertLabels(const std::string& member, const std::string& path,
                     const volcano::v1::LabelSelector& in, v1::HyperNodeSpec* spec) {
    using Labels = std::map<std::string, std::string>;
    std::vector<Labels> ways = {{in.match_labels().begin(), in.match_labels().end()}};
    for (int i = 0; i < in.match_expressions_size(); ++i) {
      const volcano::v1::LabelExpression& expression = in.match_expressions(i);
      const std::string at = absl::StrCat(path, ".match_expressions[", i, "]");
      if (expression.operator_() != "In" || expression.values().empty()) {
        return Error(at, absl::StrCat("operator ", expression.operator_(),
                                      " cannot be expressed: only In with values"));
      }
      std::vector<Labels> more;
      for (const Labels& way : ways) {
        for (const std::string& value : expression.values()) {
          Labels both = way;
          if (both.emplace(expression.key(), value).first->second == value) more.push_back(both);
        }
      }
      ways = std::move(more);
      if (ways.size() > kMaxCombinations) return Error(at, "too many combinations of values");
    }
    if (ways.empty() || ways.front().empty()) return Error(path, "selects nothing, or every node");
    for (const Labels& way : ways) {
      Add(member, Member::NODE, spec)->set_label(absl::StrJoin(way, ",", absl::PairFormatter("=")));
    }
  }

  const volcano::v1::HyperNode& in_;
  const YamlPositions& source_;
  YamlErrors& errors_;
  YamlErrors& warnings_;
  Manifest& out_;
};

}  // namespace

void ReadVolcanoHyperNode(const YamlNode& document, const ManifestOptions& options,
                          YamlErrors* errors, YamlErrors* skipped, Manifest* manifest) {
  manifest->kind = Manifest::Kind::kHyperNode;
  volcano::v1::HyperNode hyper_node;
  YamlPositions source;
  const int before = errors->count();
  ReadYamlNode(document, &hyper_node, errors, VolcanoReadOptions(options, skipped, &source));
  if (errors->count() == before) {
    HyperNodeConverter(hyper_node, source, errors, skipped, manifest).Convert();
  }
}

}  // namespace berth
