#include "offline/replay/outages.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "offline/replay/csv_rows.h"

namespace berth::replay {
namespace {

absl::Status Wrong(const std::string& file, int64_t line, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(file, ":", line, ": ", text));
}

absl::StatusOr<Outage> OutageFrom(const CsvRow& row) {
  if (row.size() < 2 || row.size() > 3 || row[0].empty()) {
    return absl::InvalidArgumentError("expected node,down,up");
  }
  Outage outage;
  outage.node = row[0];
  const absl::StatusOr<absl::Duration> down = ParseLogTime(row[1]);
  if (!down.ok()) return down.status();
  outage.down = *down;
  if (row.size() < 3 || row[2].empty()) return outage;
  const absl::StatusOr<absl::Duration> up = ParseLogTime(row[2]);
  if (!up.ok()) return up.status();
  outage.up = *up;
  if (outage.up > outage.down) return outage;
  return absl::InvalidArgumentError("up is not after down");
}

}  // namespace

absl::StatusOr<std::vector<Outage>> ReadOutages(absl::string_view text, const std::string& file) {
  std::vector<std::pair<Outage, int64_t>> found;  // with their lines
  bool first = true;
  const auto take = [&](const CsvRow& row, int64_t line) {
    if (std::exchange(first, false)) {
      if (row == CsvRow{"node", "down", "up"}) return absl::OkStatus();
      return Wrong(file, line, "the first line must be node,down,up");
    }
    absl::StatusOr<Outage> outage = OutageFrom(row);
    if (!outage.ok()) return Wrong(file, line, outage.status().message());
    found.emplace_back(*std::move(outage), line);
    return absl::OkStatus();
  };
  if (auto status = ForEachRow(text, file, take); !status.ok()) return status;
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first.down < b.first.down; });
  std::vector<Outage> outages;
  std::map<std::string, absl::Duration> back;  // by node
  for (auto& [outage, line] : found) {
    const auto [before, first] = back.try_emplace(outage.node, outage.up);
    if (!first && outage.down < before->second) {
      return Wrong(file, line, absl::StrCat(outage.node, " is already down"));
    }
    before->second = outage.up;
    outages.push_back(std::move(outage));
  }
  return outages;
}

std::vector<NodeTurn> TurnsOf(const std::vector<Outage>& outages) {
  std::vector<NodeTurn> turns;
  for (const Outage& outage : outages) {
    turns.push_back({.time = outage.down, .node = outage.node, .up = false});
    if (outage.up == absl::InfiniteDuration()) continue;
    turns.push_back({.time = outage.up, .node = outage.node, .up = true});
  }
  std::stable_sort(turns.begin(), turns.end(), [](const NodeTurn& a, const NodeTurn& b) {
    return std::tuple(a.time, !a.up, a.node) < std::tuple(b.time, !b.up, b.node);
  });
  return turns;
}

}  // namespace berth::replay
