#include "clients/cli/output_formats.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace berth {
namespace {

const std::map<Format, std::string>& FormatNames() {
  static const auto* names = new std::map<Format, std::string>{{Format::kTable, "table"},
                                                               {Format::kWide, "wide"},
                                                               {Format::kJson, "json"},
                                                               {Format::kYaml, "yaml"},
                                                               {Format::kName, "name"}};
  return *names;
}

using Formats = std::vector<Format>;

// Every command: tests/unit/cli/cli_formats_test.cc checks that none is missing.
const std::map<std::string, Formats>& All() {
  using F = Format;
  static const Formats none, json = {F::kJson}, events = {F::kTable, F::kJson}, text = {F::kTable},
                             names = {F::kTable, F::kName}, audit = {F::kTable, F::kWide, F::kJson},
                             values = {F::kTable, F::kJson, F::kYaml},
                             who = {F::kTable, F::kJson, F::kYaml, F::kName},
                             all = {F::kTable, F::kWide, F::kJson, F::kYaml, F::kName};
  static const auto* commands = new std::map<std::string, Formats>{{"apply", names},
                                                                   {"submit", all},
                                                                   {"exec", none},
                                                                   {"version", none},
                                                                   {"login", none},
                                                                   {"logout", none},
                                                                   {"man", none},
                                                                   {"completion bash", none},
                                                                   {"completion zsh", none},
                                                                   {"completion fish", none},
                                                                   {"job list", all},
                                                                   {"job get", all},
                                                                   {"job describe", all},
                                                                   {"job explain", all},
                                                                   {"job estimate", all},
                                                                   {"job plan", all},
                                                                   {"job history", json},
                                                                   {"job tasks", all},
                                                                   {"job watch", events},
                                                                   {"job logs", none},
                                                                   {"job exec", none},
                                                                   {"job wait", all},
                                                                   {"job cancel", all},
                                                                   {"job suspend", all},
                                                                   {"job resume", all},
                                                                   {"job update", all},
                                                                   {"job delete", names},
                                                                   {"queue list", all},
                                                                   {"queue get", all},
                                                                   {"queue describe", all},
                                                                   {"queue shares", all},
                                                                   {"queue create", all},
                                                                   {"queue update", all},
                                                                   {"queue open", all},
                                                                   {"queue close", all},
                                                                   {"queue delete", names},
                                                                   {"node list", all},
                                                                   {"node get", all},
                                                                   {"node describe", all},
                                                                   {"node tasks", all},
                                                                   {"node cordon", all},
                                                                   {"node drain", all},
                                                                   {"node uncordon", all},
                                                                   {"node delete", names},
                                                                   {"node token create", values},
                                                                   {"node token list", values},
                                                                   {"node token revoke", text},
                                                                   {"hypernode list", all},
                                                                   {"hypernode get", all},
                                                                   {"hypernode describe", all},
                                                                   {"hypernode create", all},
                                                                   {"hypernode update", all},
                                                                   {"hypernode delete", names},
                                                                   {"hypernode apply", names},
                                                                   {"topology show", all},
                                                                   {"topology describe", all},
                                                                   {"topology import", all},
                                                                   {"audit", audit},
                                                                   {"cluster info", all},
                                                                   {"cluster reload", values},
                                                                   {"cluster finalize", values},
                                                                   {"cluster backup", all},
                                                                   {"cluster pause", values},
                                                                   {"cluster resume", text},
                                                                   {"whoami", who},
                                                                   {"access list", values},
                                                                   {"access roles", values},
                                                                   {"access check", values},
                                                                   {"access grant", text},
                                                                   {"access revoke", text},
                                                                   {"access init", text},
                                                                   {"access set-role", text},
                                                                   {"access delete-role", text},
                                                                   {"access refuse", text},
                                                                   {"access readmit", text}};
  return *commands;
}

}  // namespace

const std::vector<Format>* FormatsOf(const std::string& command) {
  const auto found = All().find(command);
  return found == All().end() ? nullptr : &found->second;
}

std::string FormatRefusal(const std::string& command, Format format) {
  const std::vector<Format>* formats = FormatsOf(command);
  std::vector<std::string> known;
  for (const Format one : formats == nullptr ? Formats() : *formats) {
    if (one == format) return "";
    known.push_back(FormatNames().at(one));
  }
  return absl::StrCat(command, " does not support -o ", FormatNames().at(format),
                      known.empty() ? "" : absl::StrCat("; use ", absl::StrJoin(known, ", ")));
}

}  // namespace berth
