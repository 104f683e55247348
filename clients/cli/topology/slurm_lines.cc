#include "clients/cli/topology/slurm_lines.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace berth {
namespace {

bool IsKeyCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
}

// Removes one "key=value" from a line; false if there is none.
bool TakeSetting(absl::string_view* line, SlurmSetting* setting) {
  size_t end = 0;
  while (end < line->size() && IsKeyCharacter((*line)[end])) ++end;
  setting->word = std::string(line->substr(0, end));
  setting->key = absl::AsciiStrToLower(setting->word);
  absl::string_view rest = absl::StripLeadingAsciiWhitespace(line->substr(end));
  if (end == 0 || !absl::ConsumePrefix(&rest, "=")) return false;
  rest = absl::StripLeadingAsciiWhitespace(rest);
  if (absl::ConsumePrefix(&rest, "\"")) {
    const size_t quote = rest.find('"');
    if (quote == absl::string_view::npos) return false;
    setting->value = std::string(rest.substr(0, quote));
    rest.remove_prefix(quote + 1);
  } else {
    const size_t blank = std::min(rest.find_first_of(" \t\r"), rest.size());
    setting->value = std::string(rest.substr(0, blank));
    rest.remove_prefix(blank);
  }
  *line = rest;
  return true;
}

// The settings of one line; an error for anything else on it.
SlurmLine SettingsOf(absl::string_view whole, int line_number, YamlErrors* errors) {
  SlurmLine settings;
  absl::string_view line = whole.substr(0, whole.find('#'));
  for (;;) {
    line = absl::StripLeadingAsciiWhitespace(line);
    if (line.empty()) return settings;
    SlurmSetting setting;
    setting.position = {line_number, static_cast<int>(line.data() - whole.data()) + 1};
    const size_t word = std::min(line.find_first_of(" \t=\r"), line.size());
    if (!TakeSetting(&line, &setting)) {
      const bool include = absl::EqualsIgnoreCase(line.substr(0, word), "include");
      errors->Add(setting.position,
                  include ? "Include is not supported: give both files" : "expected KEY=VALUE");
      return {};
    }
    settings.push_back(std::move(setting));
  }
}

}  // namespace

void ReadSlurmLines(absl::string_view text, YamlErrors* errors,
                    absl::FunctionRef<void(const SlurmLine&)> see) {
  int number = 0;
  int first_number = 0;  // of the lines that are joined
  std::string joined;
  const auto end_line = [&] {
    const SlurmLine line = SettingsOf(joined, first_number, errors);
    if (!line.empty()) see(line);
    joined.clear();
  };
  for (const absl::string_view raw : absl::StrSplit(text, '\n')) {
    ++number;
    if (joined.empty()) first_number = number;
    absl::string_view line = absl::StripSuffix(raw, "\r");
    const bool goes_on = absl::ConsumeSuffix(&line, "\\");
    joined.append(line.data(), line.size());
    if (!goes_on) end_line();
  }
  if (!joined.empty()) end_line();
}

}  // namespace berth
