#include "clients/cli/output_formats.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace berth {
namespace {

const std::map<Format, std::string>& Names() {
  static const auto* names = new std::map<Format, std::string>{{Format::kTable, "table"},
                                                               {Format::kWide, "wide"},
                                                               {Format::kJson, "json"},
                                                               {Format::kYaml, "yaml"},
                                                               {Format::kName, "name"}};
  return *names;
}

// The commands that have not all of them.
const std::map<std::string, std::vector<Format>>& Limited() {
  using F = Format;
  static const auto* limited = new std::map<std::string, std::vector<Format>>{
      {"job logs", {}},
      {"job exec", {}},
      {"exec", {}},
      {"completion bash", {}},
      {"completion zsh", {}},
      {"completion fish", {}},
      {"version", {}},
      {"job history", {F::kJson}},
      {"job watch", {F::kTable, F::kJson}},
      {"job delete", {F::kTable, F::kName}},
      {"queue delete", {F::kTable, F::kName}},
      {"node delete", {F::kTable, F::kName}},
      {"hypernode delete", {F::kTable, F::kName}},
      {"submit", {F::kTable, F::kWide, F::kJson, F::kYaml, F::kName}},
      {"apply", {F::kTable, F::kName}},
      {"hypernode apply", {F::kTable, F::kName}},
      {"cluster reload", {F::kTable, F::kJson, F::kYaml}},
      {"cluster finalize", {F::kTable, F::kJson, F::kYaml}}};
  return *limited;
}

}  // namespace

std::string FormatRefusal(const std::string& command, Format format) {
  const auto found = Limited().find(command);
  if (found == Limited().end()) return "";
  std::vector<std::string> known;
  for (const Format one : found->second) {
    if (one == format) return "";
    known.push_back(Names().at(one));
  }
  return absl::StrCat(command, " has no -o ", Names().at(format),
                      known.empty() ? "" : absl::StrCat("; it has ", absl::StrJoin(known, ", ")));
}

}  // namespace berth
