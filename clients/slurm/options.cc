#include "clients/slurm/options.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "support/nearest.h"
#include "support/visible.h"

namespace berth {
namespace {

std::string SpellingOf(const SlurmOption& option) {
  std::string text;
  if (option.letter != 0) text = absl::StrCat("-", std::string(1, option.letter));
  if (option.name[0] == '\0') return text;
  absl::StrAppend(&text, text.empty() ? "" : ", ", "--", option.name);
  if (option.takes == Takes::kValue) text += "=VALUE";
  if (option.takes == Takes::kMaybe) text += "[=VALUE]";
  return text;
}

absl::Status UnknownOption(const SlurmCommand& command, absl::string_view name) {
  std::vector<std::string> known;
  for (const SlurmOption& option : command.options) known.emplace_back(option.name);
  const std::string nearest = NearestWord(name, known);
  return absl::InvalidArgumentError(
      absl::StrCat("unknown option --", Visible(name),
                   nearest.empty() ? absl::StrCat("; see ", command.name, " --help")
                                   : absl::StrCat("; did you mean --", nearest, "?")));
}

absl::StatusOr<const SlurmOption*> FindLong(const SlurmCommand& command, absl::string_view name) {
  const SlurmOption* found = nullptr;
  for (const SlurmOption& option : command.options) {
    if (option.name[0] == '\0' || !absl::StartsWith(option.name, name)) continue;
    if (name == option.name) return &option;
    if (found != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " may be --", found->name,
                                                     " or --", option.name, ": write it in full"));
    }
    found = &option;
  }
  if (found == nullptr || name.empty()) return UnknownOption(command, name);
  return found;
}

const SlurmOption* FindLetter(const SlurmCommand& command, char letter) {
  for (const SlurmOption& option : command.options) {
    if (option.letter == letter) return &option;
  }
  return nullptr;
}

// Reads the words of one command line.
class Parser {
 public:
  Parser(const SlurmCommand& command, const std::vector<std::string>& words,
         const std::string& source)
      : command_(command), words_(words), source_(source) {}

  absl::StatusOr<SlurmArguments> Run() {
    for (; at_ < words_.size(); ++at_) {
      const std::string& word = words_[at_];
      if (word == "--") {
        ++at_;
        break;
      }
      if (word.size() < 2 || word[0] != '-') {
        if (command_.stops_at_operand) break;
        result_.operands.push_back(word);
        continue;
      }
      absl::Status status = word[1] == '-' ? TakeLong(word.substr(2)) : TakeLetters(word);
      if (!status.ok()) return status;
    }
    result_.operands.insert(result_.operands.end(), words_.begin() + static_cast<long>(at_),
                            words_.end());
    return std::move(result_);
  }

 private:
  absl::Status TakeLong(absl::string_view text) {
    const size_t equals = text.find('=');
    const absl::StatusOr<const SlurmOption*> option = FindLong(command_, text.substr(0, equals));
    if (!option.ok()) return option.status();
    if (equals == absl::string_view::npos) return TakeWithNext(*option, false);
    if ((*option)->takes == Takes::kNothing) {
      return absl::InvalidArgumentError(absl::StrCat("--", (*option)->name, " takes no value"));
    }
    Add(*option, std::string(text.substr(equals + 1)), false);
    return absl::OkStatus();
  }

  absl::Status TakeLetters(absl::string_view word) {
    for (size_t i = 1; i < word.size(); ++i) {
      const SlurmOption* option = FindLetter(command_, word[i]);
      if (option == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat("unknown option -", word.substr(i, 1),
                                                       "; see ", command_.name, " --help"));
      }
      if (option->takes != Takes::kNothing && i + 1 < word.size()) {
        Add(option, std::string(absl::StripPrefix(word.substr(i + 1), "=")), true);
        return absl::OkStatus();
      }
      if (absl::Status status = TakeWithNext(option, true); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status TakeWithNext(const SlurmOption* option, bool letter) {
    std::string value;
    if (option->takes == Takes::kValue) {
      if (at_ + 1 >= words_.size()) {
        return absl::InvalidArgumentError(absl::StrCat(SpellingOf(*option), " needs a value"));
      }
      value = words_[++at_];
    }
    Add(option, std::move(value), letter);
    return absl::OkStatus();
  }

  void Add(const SlurmOption* option, std::string value, bool letter) {
    const std::string written = letter ? absl::StrCat("-", std::string(1, option->letter))
                                       : absl::StrCat("--", option->name);
    result_.options.push_back({option, std::move(value),
                               source_.empty() ? written : absl::StrCat(source_, ": ", written)});
  }

  const SlurmCommand& command_;
  const std::vector<std::string>& words_;
  const std::string& source_;
  size_t at_ = 0;
  SlurmArguments result_;
};

const char* NameOf(Fate fate) {
  switch (fate) {
    case Fate::kDone:
      return "done";
    case Fate::kRefused:
      return "refused";
    case Fate::kNoMeaning:
      return "no meaning";
  }
  return "";
}

}  // namespace

const std::string* SlurmArguments::Find(absl::string_view name) const {
  for (auto given = options.rbegin(); given != options.rend(); ++given) {
    if (given->option->name == name) return &given->value;
  }
  return nullptr;
}

absl::StatusOr<SlurmArguments> ParseSlurmArguments(const SlurmCommand& command,
                                                   const std::vector<std::string>& words,
                                                   const std::string& source) {
  return Parser(command, words, source).Run();
}

absl::StatusOr<SlurmArguments> OptionsOfVariables(
    const SlurmCommand& command,
    const std::vector<std::pair<std::string, std::string>>& variables) {
  SlurmArguments result;
  const absl::string_view prefix = command.variables;
  if (prefix.empty()) return result;
  for (const auto& [name, value] : variables) {
    absl::string_view rest = name;
    if (!absl::ConsumePrefix(&rest, prefix)) continue;
    const auto option =
        std::find_if(command.options.begin(), command.options.end(), [&](const SlurmOption& known) {
          return known.variable[0] != '\0' && known.variable == rest;
        });
    if (option == command.options.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the variable ", Visible(name), " is not known; unset it"));
    }
    result.options.push_back({&*option, value, name});
  }
  return result;
}

bool AcceptOptions(const SlurmCommand& command, const SlurmArguments& arguments,
                   std::ostream& err) {
  bool accepted = true;
  for (const GivenOption& given : arguments.options) {
    if (given.option->fate == Fate::kDone) continue;
    const bool refused = given.option->fate == Fate::kRefused;
    accepted = accepted && !refused;
    err << command.name << ": " << (refused ? "error: " : "") << Visible(given.source)
        << (refused ? " is not built: " : " has no meaning here: ") << given.option->text << "\n";
  }
  return accepted;
}

std::string SlurmHelp(const SlurmCommand& command) {
  constexpr size_t kColumn = 32;
  std::string text = absl::StrCat("Usage: ", command.name, " [OPTION...] ", command.operands, "\n",
                                  command.name, ": ", command.summary, ", of Berth\n\nOptions:\n");
  for (const SlurmOption& option : command.options) {
    if (option.fate != Fate::kDone) continue;
    std::string line = absl::StrCat("  ", option.letter == 0 ? "    " : "", SpellingOf(option));
    line += line.size() < kColumn ? std::string(kColumn - line.size(), ' ') : "  ";
    absl::StrAppend(&text, line, option.text, "\n");
  }
  absl::StrAppend(&text,
                  "\nSlurm's other options are refused by name, with what to write instead.\n");
  return text;
}

std::string SlurmOptionTable(const SlurmCommand& command) {
  std::string text =
      absl::StrCat("## ", command.name, "\n\n`", command.name, " [OPTION...]",
                   command.operands[0] == '\0' ? "" : " ", command.operands, "`: ", command.summary,
                   ".\n\n| option | | what it does, or what to write "
                   "instead |\n|---|---|---|\n");
  for (const SlurmOption& option : command.options) {
    const std::string variable =
        option.variable[0] == '\0' ? ""
                                   : absl::StrCat(" (`", command.variables, option.variable, "`)");
    absl::StrAppend(&text, "| `", absl::StrReplaceAll(SpellingOf(option), {{", ", "` `"}}), "`",
                    variable, " | ", NameOf(option.fate), " | ",
                    absl::StrReplaceAll(option.text, {{"|", "\\|"}}), " |\n");
  }
  return text;
}

}  // namespace berth
