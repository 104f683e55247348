#include "clients/cli/migrate/association_reader.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace berth {
namespace {

// "Def QOS" -> "defqos"
std::string KeyOf(absl::string_view word) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(word), {{" ", ""}});
}

std::string Unquoted(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'')
    text = text.substr(1, text.size() - 2);
  return std::string(text);
}

// Splits at the colons outside of quotes. The names of options begin with a capital letter, so that
// "GrpTRES=gres/gpu:a100=4" stays one.
std::vector<std::string> SplitOptions(absl::string_view text) {
  std::vector<std::string> parts;
  std::string part;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\'') quoted = !quoted;
    const bool ends =
        text[i] == ':' && !quoted &&
        (i + 1 == text.size() || absl::ascii_isupper(static_cast<unsigned char>(text[i + 1])));
    if (ends) {
      parts.push_back(std::exchange(part, ""));
    } else {
      part.push_back(text[i]);
    }
  }
  parts.push_back(part);
  return parts;
}

absl::Status TooMany(const SourceText& text, int line) {
  return absl::InvalidArgumentError(absl::StrCat(text.name, ":", line, ": more than ",
                                                 kMaxSlurmAssociations, " accounts and users"));
}

// Of a dump. Lines are "KIND - 'NAME':OPTION=VALUE:...".
class DumpReader {
 public:
  DumpReader(const SourceText& text, SlurmSite* site)
      : text_(text), site_(*site), errors_(text.name) {}

  absl::Status Read() {
    int number = 0;
    for (absl::string_view line : absl::StrSplit(text_.text, '\n')) {
      ++number;
      line = absl::StripAsciiWhitespace(line);
      if (line.empty() || line[0] == '#') continue;
      if (site_.associations.size() >= kMaxSlurmAssociations) return TooMany(text_, number);
      ReadLine(line, {number, 1});
    }
    return errors_.status();
  }

 private:
  void ReadLine(absl::string_view line, YamlPosition position) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    const std::string kind = absl::AsciiStrToLower(sides.first);
    const std::vector<std::string> options = SplitOptions(sides.second);
    const std::string name = Unquoted(options.front());
    if (name.empty() || sides.second.empty())
      return errors_.Add(position, "expected KIND - 'NAME':OPTION=VALUE:...");
    SlurmAssociation association{.place = {text_.name, position}};
    association.options = OptionsOf(options, position);
    if (kind == "cluster") {
      if (site_.cluster_name.empty()) site_.cluster_name = name;
      association.account = "root";
    } else if (kind == "parent") {
      parent_ = name;
      return;
    } else if (kind == "account" || kind == "project") {
      association.account = name;
      association.parent = parent_ == "root" ? "" : parent_;
    } else if (kind == "user") {
      association.account = parent_;
      association.user = name;
    } else {
      return errors_.Add(position, "expected Cluster, Parent, Account or User");
    }
    site_.associations.push_back(std::move(association));
  }

  std::vector<SlurmOptionText> OptionsOf(const std::vector<std::string>& parts,
                                         YamlPosition position) {
    std::vector<SlurmOptionText> options;
    for (size_t i = 1; i < parts.size(); ++i) {
      const std::pair<std::string, std::string> sides =
          absl::StrSplit(parts[i], absl::MaxSplits('=', 1));
      if (sides.second.empty()) {
        errors_.Add(position, absl::StrCat("expected OPTION=VALUE, got \"", parts[i], "\""));
        continue;
      }
      options.push_back({KeyOf(sides.first), sides.first, Unquoted(sides.second)});
    }
    return options;
  }

  const SourceText& text_;
  SlurmSite& site_;
  YamlErrors errors_;
  std::string parent_ = "root";
};

// A row of a table with "|" between the columns, by the keys of its heading.
struct TableRow {
  std::map<std::string, std::string> cells;
  std::vector<SlurmOptionText> options;  // all that are not empty, in the order of the columns
  SourcePlace place;
};

absl::Status ReadTable(const SourceText& text, const std::vector<std::string>& needed,
                       const std::function<absl::Status(const TableRow&)>& see) {
  YamlErrors errors(text.name);
  std::vector<std::string> heading;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text.text, '\n')) {
    ++number;
    absl::ConsumeSuffix(&line, "\r");
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    if (heading.empty()) {
      heading = cells;
      continue;
    }
    if (cells.size() != heading.size()) {
      errors.Add({number, 1}, absl::StrCat("has ", cells.size(), " columns, and the heading has ",
                                           heading.size()));
      continue;
    }
    TableRow row{.cells = {}, .options = {}, .place = {text.name, {number, 1}}};
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string key = KeyOf(heading[i]);
      row.cells[key] = cells[i];
      if (!key.empty() && !cells[i].empty()) row.options.push_back({key, heading[i], cells[i]});
    }
    for (const std::string& key : needed) {
      if (!row.cells.contains(key)) {
        return absl::InvalidArgumentError(absl::StrCat(text.name, ":1: there is no column ", key,
                                                       ": print it with sacctmgr show -P"));
      }
    }
    const absl::Status status = see(row);
    if (!status.ok()) return status;
  }
  return errors.status();
}

// Depth by leading blanks, as "tree" prints it, or by the column of parents.
class ParentFinder {
 public:
  std::string ParentOf(const TableRow& row, const std::string& account, size_t depth) {
    stack_.resize(std::min(stack_.size(), depth));
    const std::string above = stack_.empty() ? "" : stack_.back();
    if (stack_.size() == depth) stack_.push_back(account);
    for (const char* column : {"parentname", "parname"}) {
      const auto found = row.cells.find(column);
      if (found != row.cells.end()) return found->second == "root" ? "" : found->second;
    }
    return above == "root" ? "" : above;
  }

 private:
  std::vector<std::string> stack_;
};

absl::Status ReadAssociationTable(const SourceText& text, SlurmSite* site) {
  ParentFinder parents;
  std::set<std::string> clusters;
  const std::string wanted = site->cluster_name;
  const absl::Status status = ReadTable(text, {"account", "user"}, [&](const TableRow& row) {
    const auto cluster = row.cells.find("cluster");
    if (cluster != row.cells.end()) {
      clusters.insert(cluster->second);
      if (!wanted.empty() && !cluster->second.empty() && cluster->second != wanted)
        return absl::OkStatus();
    }
    if (site->associations.size() >= kMaxSlurmAssociations)
      return TooMany(text, row.place.position.line);
    const std::string& padded = row.cells.at("account");
    SlurmAssociation association{.account = std::string(absl::StripAsciiWhitespace(padded)),
                                 .user = row.cells.at("user"),
                                 .options = row.options,
                                 .place = row.place};
    const size_t depth = padded.find_first_not_of(' ');
    if (association.account.empty()) return absl::OkStatus();
    if (association.user.empty())
      association.parent = parents.ParentOf(row, association.account, depth);
    std::erase_if(association.options, [](const SlurmOptionText& option) {
      static const std::set<std::string>& kOwn =
          *new std::set<std::string>{"cluster", "account", "user", "parentname", "parname"};
      return kOwn.contains(option.key);
    });
    site->associations.push_back(std::move(association));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (wanted.empty() && clusters.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(text.name, ": has several clusters; give slurm.conf with ClusterName"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadAssociations(const SourceText& text, SlurmSite* site) {
  const absl::string_view first = absl::string_view(text.text).substr(0, text.text.find('\n'));
  const size_t before = site->associations.size();
  const absl::Status status = absl::StrContains(first, '|') ? ReadAssociationTable(text, site)
                                                            : DumpReader(text, site).Read();
  if (!status.ok() || site->associations.size() > before) return status;
  return absl::InvalidArgumentError(absl::StrCat(text.name, ": there is no account in it"));
}

absl::Status ReadQosTable(const SourceText& text, SlurmSite* site) {
  return ReadTable(text, {"name", "priority"}, [&](const TableRow& row) {
    if (site->qos.size() >= kMaxSlurmQos) {
      return absl::InvalidArgumentError(
          absl::StrCat(row.place.text(), ": more than ", kMaxSlurmQos, " QOS"));
    }
    SlurmQosText qos{.name = row.cells.at("name"), .options = row.options, .place = row.place};
    std::erase_if(qos.options, [](const SlurmOptionText& option) { return option.key == "name"; });
    site->qos.push_back(std::move(qos));
    return absl::OkStatus();
  });
}

}  // namespace berth
