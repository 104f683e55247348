#include "clients/cli/command_walk.h"

#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace berth {
namespace {

class Walker {
 public:
  explicit Walker(const CLI::App& root) { walk_.place = &root; }

  void Take(const std::string& word, size_t index) {
    if (walk_.pending != nullptr) {
      walk_.values.emplace_back(std::exchange(walk_.pending, nullptr), word);
    } else if (word == "--") {
      walk_.dashes = true;
    } else if (absl::StartsWith(word, "--")) {
      TakeLong(word);
    } else if (word.size() > 1 && word[0] == '-') {
      TakeShort(word);
    } else {
      TakeWord(word, index);
    }
  }
  CommandWalk walk() const { return walk_; }

 private:
  void TakeLong(const std::string& word) {
    const size_t equals = word.find('=');
    const CLI::Option* option = FindOption(*walk_.place, word.substr(0, equals));
    if (option == nullptr) return NoteUnknown();
    if (equals != std::string::npos) {
      walk_.values.emplace_back(option, word.substr(equals + 1));
    } else if (!IsFlag(*option)) {
      walk_.pending = option;
    }
  }

  // "-f", "-n5", "-wf".
  void TakeShort(const std::string& word) {
    for (size_t at = 1; at < word.size(); ++at) {
      const CLI::Option* option = FindOption(*walk_.place, absl::StrCat("-", word.substr(at, 1)));
      if (option == nullptr) NoteUnknown();
      if (option == nullptr || IsFlag(*option)) continue;
      if (at + 1 == word.size()) {
        walk_.pending = option;
      } else {
        walk_.values.emplace_back(option, word.substr(at + 1));
      }
      return;
    }
  }

  void TakeWord(const std::string& word, size_t index) {
    const auto all = [](const CLI::App*) { return true; };
    for (const CLI::App* command : walk_.place->get_subcommands(all)) {
      if (!walk_.positionals.empty() || command->get_name() != word) continue;
      walk_.place = command;
      return;
    }
    if (walk_.positionals.empty()) walk_.first_positional = index;
    walk_.positionals.push_back(word);
  }

  void NoteUnknown() { walk_.unknown_option |= walk_.positionals.empty(); }

  CommandWalk walk_;
};

// Quotes a word for a POSIX shell.
std::string Quoted(const std::string& word) {
  constexpr char kPlain[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

bool LooksLikeManifest(const std::string& word) {
  return word == "-" || absl::EndsWith(word, ".yaml") || absl::EndsWith(word, ".yml") ||
         absl::EndsWith(word, ".json") || access(word.c_str(), F_OK) == 0;
}

}  // namespace

CommandWalk WalkCommandLine(const CLI::App& root, const std::vector<std::string>& words) {
  Walker walker(root);
  for (size_t i = 0; i < words.size() && !walker.walk().dashes; ++i) walker.Take(words[i], i);
  return walker.walk();
}

const CLI::Option* FindOption(const CLI::App& place, const std::string& name) {
  for (const CLI::App* app = &place; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      if (!option->get_positional() && option->check_name(name)) return option;
    }
  }
  return nullptr;
}

bool IsFlag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

std::string SubmitHint(const CLI::App& root, const std::vector<std::string>& words) {
  const CommandWalk walk = WalkCommandLine(root, words);
  if (walk.dashes || walk.place->get_name() != "submit" || walk.positionals.empty()) return "";
  // The word after an unknown option may be its value.
  if (walk.unknown_option || LooksLikeManifest(walk.positionals.front())) return "";
  std::string line = "berth";
  for (size_t i = 0; i < words.size(); ++i) {
    if (i == *walk.first_positional) line += " --";
    absl::StrAppend(&line, " ", Quoted(words[i]));
  }
  return absl::StrCat(walk.positionals.front(), ": no such file; to run a command, write: ", line);
}

}  // namespace berth
