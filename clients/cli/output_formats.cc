#include "clients/cli/output_formats.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace berth {
namespace {

const std::map<Format, std::string>& FormatNames() {
  static const auto* names = new std::map<Format, std::string>{
      {Format::kTable, "table"}, {Format::kWide, "wide"}, {Format::kJson, "json"},
      {Format::kYaml, "yaml"},   {Format::kName, "name"}, {Format::kCsv, "csv"}};
  return *names;
}

using Formats = std::vector<Format>;

// Commands with the same formats.
struct CommandsWith {
  Formats formats;
  std::vector<const char*> commands;
};

// Every command: tests/unit/cli/cli_formats_test.cc checks that none is missing.
std::vector<CommandsWith> Groups() {
  using F = Format;
  return {
      {{},
       {"exec", "run", "attach", "port-forward", "cp", "version", "login", "logout", "man",
        "migrate slurm", "completion bash", "completion zsh", "completion fish", "job logs",
        "job exec"}},
      {{F::kJson}, {"job history"}},
      {{F::kTable, F::kJson}, {"job watch"}},
      {{F::kTable},
       {"node token revoke", "cluster resume", "access grant", "access revoke", "access init",
        "access set-role", "access delete-role", "access refuse", "access readmit"}},
      {{F::kTable, F::kName},
       {"apply", "job delete", "queue delete", "node delete", "hypernode delete", "hypernode apply",
        "priority-class delete"}},
      {{F::kTable, F::kWide, F::kJson}, {"audit"}},
      {{F::kTable, F::kWide, F::kJson, F::kCsv}, {"job ended"}},
      {{F::kTable, F::kWide, F::kJson, F::kYaml, F::kCsv}, {"usage", "cluster usage"}},
      {{F::kTable, F::kJson, F::kYaml},
       {"node token create", "node token list", "cluster reload", "cluster finalize",
        "cluster pause", "cluster members", "cluster handover", "cluster etcd-repair",
        "access list", "access roles", "access check"}},
      {{F::kTable, F::kJson, F::kYaml, F::kName}, {"whoami"}},
      {{F::kTable, F::kWide, F::kJson, F::kYaml, F::kName},
       {"submit",
        "job list",
        "job get",
        "job describe",
        "job explain",
        "job estimate",
        "job plan",
        "job tasks",
        "job wait",
        "job cancel",
        "job suspend",
        "job resume",
        "job requeue",
        "job update",
        "queue list",
        "queue get",
        "queue describe",
        "queue shares",
        "queue create",
        "queue update",
        "queue open",
        "queue close",
        "priority-class list",
        "priority-class get",
        "node list",
        "node get",
        "node describe",
        "node tasks",
        "node cordon",
        "node drain",
        "node uncordon",
        "hypernode list",
        "hypernode get",
        "hypernode describe",
        "hypernode create",
        "hypernode update",
        "topology show",
        "topology describe",
        "topology import",
        "cluster info",
        "cluster backup"}},
  };
}

const std::map<std::string, Formats>& All() {
  static const auto* const all = [] {
    auto* map = new std::map<std::string, Formats>();
    for (const CommandsWith& group : Groups()) {
      for (const char* command : group.commands) map->emplace(command, group.formats);
    }
    return map;
  }();
  return *all;
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
