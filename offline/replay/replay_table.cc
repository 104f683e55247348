// Formats results as tables for people.
#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "offline/replay/figure_list.h"
#include "offline/replay/replay_result.h"
#include "offline/sim/output.h"
#include "support/visible_message.h"

namespace berth::replay {
namespace {

void AppendRow(const char* name, const sim::v1::Distribution& d, std::string* text) {
  absl::StrAppendFormat(text, "%-14s %14.2f %14.2f %14.2f %14.2f %14.2f\n", name, d.mean(),
                        d.median(), d.p95(), d.p99(), d.max());
}

bool OfDistribution(const std::string& name) {
  for (const char* part : {", mean", ", median", ", p95", ", p99", ", max"}) {
    if (absl::EndsWith(name, part)) return true;
  }
  return false;
}

void AppendOne(const sim::v1::PolicyResult& policy, std::string* text) {
  absl::StrAppendFormat(text, "\n%-14s %14s %14s %14s %14s %14s\n", policy.name(), "mean", "median",
                        "95 %", "99 %", "max");
  AppendRow("wait s", policy.wait(), text);
  AppendRow("completion s", policy.completion(), text);
  AppendRow("slowdown", policy.bounded_slowdown(), text);
  if (policy.has_network()) AppendRow("run / alone", policy.network().slowdown(), text);
  for (const Figure& figure : FigureList(policy)) {
    if (OfDistribution(figure.name)) continue;  // above
    absl::StrAppendFormat(text, "%-29s %14.*f %s\n", figure.name, figure.digits, figure.value,
                          figure.unit);
  }
}

void AppendSideBySide(const sim::v1::ReplayResult& result, std::string* text) {
  std::vector<std::vector<Figure>> lists;
  absl::StrAppendFormat(text, "\n%-32s", "");
  for (const sim::v1::PolicyResult& policy : result.policies()) {
    lists.push_back(FigureList(policy));
    absl::StrAppendFormat(text, " %14s", policy.name());
  }
  *text += "\n";
  for (const FigureRow& row : FigureRows(lists)) {
    absl::StrAppendFormat(text, "%-25s %-6s", row.name, row.unit);
    for (const auto& value : row.values) {
      absl::StrAppendFormat(text, " %14s", FigureText(value, row.digits));
    }
    *text += "\n";
  }
}

using Owners = google::protobuf::RepeatedPtrField<sim::v1::OwnerResult>;

std::string NameOf(const sim::v1::OwnerResult& owner) {
  return owner.name().empty() ? "-" : owner.name();
}

double GpuOrCpu(const google::protobuf::Map<std::string, double>& amounts) {
  const auto gpu = amounts.find("gpu");
  if (gpu != amounts.end()) return gpu->second;
  const auto cpu = amounts.find("cpu");
  return cpu == amounts.end() ? 0 : cpu->second;
}

struct OwnerLine {
  const char* name;
  const sim::v1::Distribution& (sim::v1::OwnerResult::*of)() const;
};
constexpr std::array<OwnerLine, 3> kOwnerLines = {
    {{"wait, s", &sim::v1::OwnerResult::wait},
     {"completion, s", &sim::v1::OwnerResult::completion},
     {"slowdown", &sim::v1::OwnerResult::bounded_slowdown}}};

// A table for each distribution, and one for what was held and lost.
void AppendOwners(const std::string& policy, const char* what, const Owners& owners,
                  std::string* text) {
  const std::string by = absl::StrCat("\n", policy, ", by ", what, ": ");
  for (const OwnerLine& line : kOwnerLines) {
    absl::StrAppendFormat(text, "%s%s\n%-20s %8s %14s %14s %14s %14s %14s\n", by, line.name, what,
                          "finished", "mean", "median", "95 %", "99 %", "max");
    for (const sim::v1::OwnerResult& one : owners) {
      const sim::v1::Distribution& d = (one.*line.of)();
      absl::StrAppendFormat(text, "%-20s %8d %14.2f %14.2f %14.2f %14.2f %14.2f\n", NameOf(one),
                            one.finished(), d.mean(), d.median(), d.p95(), d.p99(), d.max());
    }
  }
  absl::StrAppendFormat(text, "%sdominant share, use and losses\n", by);
  absl::StrAppendFormat(text, "%-20s %8s %8s %9s %9s %9s %9s %8s %8s %8s\n", what, "jobs", "never",
                        "share %", "max %", "use %", "goodput %", "preempt", "evicted", "failed");
  for (const sim::v1::OwnerResult& one : owners) {
    absl::StrAppendFormat(text, "%-20s %8d %8d %9.2f %9.2f %9.2f %9.2f %8d %8d %8d\n", NameOf(one),
                          one.jobs(), one.never(), 100 * one.share(), 100 * one.max_share(),
                          100 * GpuOrCpu(one.utilisation()), 100 * GpuOrCpu(one.goodput()),
                          one.preemptions(), one.evictions(), one.failures());
  }
}

std::string Table(const sim::v1::ReplayResult& result, TableOf of) {
  std::string text = absl::StrFormat("%s: %d jobs\n", result.workload(), result.jobs());
  using Counts = std::map<std::string, int64_t>;
  for (const auto& [reason, count] : Counts(result.left_out().begin(), result.left_out().end())) {
    absl::StrAppendFormat(&text, "left out, %s: %d\n", reason, count);
  }
  for (const auto& [what, count] : Counts(result.counted().begin(), result.counted().end())) {
    absl::StrAppendFormat(&text, "%s in the workload: %d\n", what, count);
  }
  if (result.policies_size() == 1) {
    AppendOne(result.policies(0), &text);
  } else {
    AppendSideBySide(result, &text);
  }
  for (const sim::v1::PolicyResult& policy : result.policies()) {
    if (of == TableOf::kQueues) AppendOwners(policy.name(), "queue", policy.queues(), &text);
    if (of == TableOf::kUsers) AppendOwners(policy.name(), "user", policy.users(), &text);
  }
  return text;
}

}  // namespace

std::string Printed(const sim::v1::ReplayResult& result, absl::string_view format, TableOf of) {
  return format == "table" ? Table(VisibleCopy(result), of) : PrintedFigures(result, format);
}

}  // namespace berth::replay
