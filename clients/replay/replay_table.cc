// Results as tables for people.
#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/replay/figure_list.h"
#include "clients/replay/network_result.h"
#include "clients/replay/replay_result.h"
#include "clients/sim/output.h"

namespace berth::replay {
namespace {

// Distributions of a table, with a column for each of their figures.
struct Line {
  const char* name;
  const sim::v1::Distribution& (sim::v1::PolicyResult::*of)() const;
};
constexpr std::array<Line, 3> kLines = {{{"wait s", &sim::v1::PolicyResult::wait},
                                         {"completion s", &sim::v1::PolicyResult::completion},
                                         {"slowdown", &sim::v1::PolicyResult::bounded_slowdown}}};

void AppendOne(const sim::v1::PolicyResult& policy, std::string* text) {
  absl::StrAppendFormat(text, "\n%-14s %14s %14s %14s %14s %14s\n", policy.name(), "mean", "median",
                        "95 %", "99 %", "max");
  for (const Line& line : kLines) {
    const sim::v1::Distribution& d = (policy.*line.of)();
    absl::StrAppendFormat(text, "%-14s %14.2f %14.2f %14.2f %14.2f %14.2f\n", line.name, d.mean(),
                          d.median(), d.p95(), d.p99(), d.max());
  }
  for (const Figure& figure : FigureList(policy)) {
    if (figure.name.find(',') != std::string::npos) continue;  // above
    absl::StrAppendFormat(text, "%-29s %14.*f %s\n", figure.name, figure.digits, figure.value,
                          figure.unit);
  }
}

void AppendSideBySide(const sim::v1::ReplayResult& result, std::string* text) {
  std::vector<const sim::v1::PolicyResult*> policies;
  absl::StrAppendFormat(text, "\n%-32s", "");
  for (const sim::v1::PolicyResult& policy : result.policies()) {
    policies.push_back(&policy);
    absl::StrAppendFormat(text, " %14s", policy.name());
  }
  *text += "\n";
  for (const FigureRow& row : FigureRows(policies)) {
    absl::StrAppendFormat(text, "%-25s %-6s", row.name, row.unit);
    for (const auto& value : row.values) {
      absl::StrAppendFormat(text, " %14s", FigureText(value, row.digits));
    }
    *text += "\n";
  }
}

double GpuOrCpu(const google::protobuf::Map<std::string, double>& amounts) {
  const auto gpu = amounts.find("gpu");
  if (gpu != amounts.end()) return gpu->second;
  const auto cpu = amounts.find("cpu");
  return cpu == amounts.end() ? 0 : cpu->second;
}

void AppendOwners(const std::string& policy, const char* what,
                  const google::protobuf::RepeatedPtrField<sim::v1::OwnerResult>& owners,
                  std::string* text) {
  absl::StrAppendFormat(text, "\n%s, by %s\n%-20s %8s %12s %12s %12s %10s %9s %9s %9s %7s %7s\n",
                        policy, what, what, "jobs", "wait mean", "wait 95 %", "compl. mean",
                        "slowdown", "share %", "max %", "goodput %", "preempt", "failed");
  for (const sim::v1::OwnerResult& one : owners) {
    absl::StrAppendFormat(text, "%-20s %8d %12.1f %12.1f %12.1f %10.2f %9.2f %9.2f %9.2f %7d %7d\n",
                          one.name().empty() ? "-" : one.name(), one.jobs(), one.wait().mean(),
                          one.wait().p95(), one.completion().mean(), one.bounded_slowdown().mean(),
                          100 * one.share(), 100 * one.max_share(), 100 * GpuOrCpu(one.goodput()),
                          one.preemptions(), one.failures());
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
    if (!policy.has_network()) continue;
    absl::StrAppend(&text, "\n", policy.name(), "\n", NetworkTable(policy.network()));
  }
  return text;
}

}  // namespace

std::string Printed(const sim::v1::ReplayResult& result, absl::string_view format, TableOf of) {
  return format == "table" ? Table(result, of) : PrintedMessage(result, format);
}

}  // namespace berth::replay
