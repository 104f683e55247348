#include "offline/sim/update.h"

#include <fstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "offline/sim/expectation.h"
#include "support/text_file.h"

namespace berth {
namespace {

constexpr absl::string_view kKey = "expect:";

size_t IndentOf(const std::string& line) { return line.find_first_not_of(' '); }

// "  - expect: ..." or "expect: ...": the column of the key; npos if it does not begin the line.
size_t KeyColumn(const std::string& line) {
  const size_t column = line.find(std::string(kKey));
  if (column == std::string::npos) return column;
  return line.find_first_not_of(" -") == column ? column : std::string::npos;
}

// The first line after `first` that is not part of the block whose key is in `column`.
size_t BlockEnd(const std::vector<std::string>& lines, size_t first, size_t column) {
  size_t end = first + 1;
  for (size_t i = end; i < lines.size(); ++i) {
    const size_t indent = IndentOf(lines[i]);
    if (indent == std::string::npos) continue;  // blank lines at its end stay outside
    if (indent <= column) break;
    end = i + 1;
  }
  return end;
}

}  // namespace

void Updates::Add(const ScenarioDocument& document, const ScenarioRun& run) {
  if (run.result.mismatches().empty()) return;
  for (const auto& [path, actual] : run.actual) {
    const auto position = document.positions.find(path);
    if (position != document.positions.end()) by_line_[position->second.line] = actual;
  }
}

absl::StatusOr<std::string> Updates::Apply(const std::string& text) const {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  std::vector<std::string> result;
  for (size_t i = 0; i < lines.size();) {
    const auto update = by_line_.find(static_cast<int>(i) + 1);
    if (update == by_line_.end()) {
      result.push_back(lines[i++]);
      continue;
    }
    const size_t column = KeyColumn(lines[i]);
    if (column == std::string::npos) {
      return absl::FailedPreconditionError(
          absl::StrCat("line ", i + 1, ": \"expect\" must begin its line to be rewritten"));
    }
    std::string block = ExpectationText(update->second, static_cast<int>(column));
    block.replace(0, column, lines[i].substr(0, column));
    block.pop_back();
    result.push_back(block);
    i = BlockEnd(lines, i, column);
  }
  return absl::StrJoin(result, "\n");
}

absl::Status Updates::Write(const std::string& file) const {
  if (by_line_.empty()) return absl::OkStatus();
  const auto text = ReadTextFile(file);
  if (!text.ok()) return text.status();
  const auto updated = Apply(*text);
  if (!updated.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(file, ": ", updated.status().message()));
  }
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << *updated;
  out.close();
  return out ? absl::OkStatus() : absl::UnavailableError(absl::StrCat(file, ": cannot be written"));
}

}  // namespace berth
