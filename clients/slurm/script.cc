#include "clients/slurm/script.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace berth {
namespace {

constexpr char kDirective[] = "#SBATCH";

bool IsBlank(char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); }

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitWords(absl::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && !in_word && c == '#') break;
    if (quote == 0 && IsBlank(c)) {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
      continue;
    }
    in_word = true;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      word += line[++i];
    } else {
      word += c;
    }
  }
  if (quote != 0) return absl::InvalidArgumentError("a quote is not closed");
  if (in_word) words.push_back(std::move(word));
  return words;
}

absl::StatusOr<std::vector<ScriptLine>> DirectivesOf(absl::string_view script) {
  std::vector<ScriptLine> lines;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(script, '\n')) {
    ++number;
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (!text.empty() && text[0] != '#') break;
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, kDirective) || (!rest.empty() && !IsBlank(rest[0]))) continue;
    auto words = SplitWords(rest);
    if (!words.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("script line ", number, ": ", words.status().message()));
    }
    lines.push_back({number, *std::move(words)});
  }
  return lines;
}

absl::StatusOr<SlurmArguments> OptionsOfScript(const SlurmCommand& command,
                                               absl::string_view script) {
  const auto lines = DirectivesOf(script);
  if (!lines.ok()) return lines.status();
  SlurmArguments all;
  for (const ScriptLine& line : *lines) {
    const std::string source = absl::StrCat("script line ", line.number);
    const auto options = ParseSlurmArguments(command, line.words, source);
    if (!options.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(source, ": ", options.status().message()));
    }
    if (!options->operands.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": \"", options->operands.front(), "\" is no option"));
    }
    all.options.insert(all.options.end(), options->options.begin(), options->options.end());
  }
  return all;
}

absl::Status CheckScript(absl::string_view script) {
  if (script.size() > kMostScriptBytes)
    return absl::InvalidArgumentError("the script is larger than 4 MiB");
  if (!absl::StartsWith(script, "#!")) {
    return absl::InvalidArgumentError(
        "this does not look like a batch script: its first line must begin with #! and a path");
  }
  if (absl::StrContains(script, '\0'))
    return absl::InvalidArgumentError("the script has NUL bytes");
  if (absl::StrContains(script.substr(0, script.find('\n')), '\r')) {
    return absl::InvalidArgumentError(
        "the script has lines that end as in Windows (\\r\\n): convert it with dos2unix");
  }
  return absl::OkStatus();
}

}  // namespace berth
