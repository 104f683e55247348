#include "clients/cli/completion.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/cli/command.h"
#include "clients/cli/command_walk.h"
#include "clients/cli/completion_names.h"
#include "clients/cli/completion_scripts.h"
#include "clients/cli/verb_first.h"

namespace berth {
namespace {

constexpr char kFiles[] = ":files";

struct Candidate {
  std::string text;
  std::string description;
};

// The completions of a word. Only texts that begin with `prefix` are kept.
class Candidates {
 public:
  Candidates(std::string before, std::string prefix)
      : before_(std::move(before)), prefix_(std::move(prefix)) {}

  const std::string& prefix() const { return prefix_; }
  void Add(const std::string& text, const std::string& description = "") {
    if (absl::StartsWith(text, prefix_)) found_.push_back({before_ + text, description});
  }
  void Print(std::ostream& out) const {
    for (const Candidate& one : found_) {
      out << one.text << (one.description.empty() ? "" : "\t") << one.description << "\n";
    }
  }

 private:
  const std::string before_;  // of the same word: "--queue="
  const std::string prefix_;
  std::vector<Candidate> found_;
};

// "job" of "berth job list".
std::string CompletedNoun(const CLI::App& place) {
  const CLI::App* noun = &place;
  while (noun->get_parent() != nullptr && noun->get_parent()->get_parent() != nullptr)
    noun = noun->get_parent();
  return noun->get_name();
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// The words of CLI::IsMember: it describes itself as "{a,b}".
std::vector<std::string> Choices(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return absl::StrSplit(type.substr(begin + 1, end - begin - 1), ',');
}

// The noun whose names complete the value, or "".
std::string NounOfValue(const CLI::App& place, const CLI::Option& option) {
  if (option.get_positional()) {
    if (option.get_name() == "JOB") return "job";
    if (option.get_name() != "NAME") return "";
    return CompletedNoun(place) == "topology" ? "hypernode" : CompletedNoun(place);
  }
  const std::set<std::string> names(option.get_lnames().begin(), option.get_lnames().end());
  if (names.count("queue") > 0 || names.count("parent") > 0) return "queue";
  if (names.count("after") > 0) return "job";
  if (names.count("node") > 0) return "node";
  if (names.count("child") > 0) return "hypernode";
  if (names.count("priority-class") > 0) return "priority-class";
  return "";
}

bool TakesFile(const CLI::Option& option) {
  if (option.get_positional()) {
    const std::string name = option.get_name();
    return name == "FILE" || name == "SOURCE" || name == "TARGET";
  }
  for (const char* name :
       {"--file", "--tls-certificate", "--tls-key", "--tls-ca", "--auth-socket", "--auth-ca",
        "--token-file", "--ports", "--output-directory", "--conf", "--associations", "--qos"}) {
    if (option.check_name(name)) return true;
  }
  return option.check_name("--directory");
}

// These commands are useless for jobs that have ended.
bool WantsActive(const CLI::App& place) {
  static const auto& verbs =
      *new std::set<std::string>{"cancel",   "suspend", "requeue", "wait",        "explain",
                                 "estimate", "exec",    "attach",  "port-forward"};
  return verbs.count(place.get_name()) > 0;
}

// Applies --server and the TLS options of the command line, so that names come from the right
// cluster. Invalid values change nothing.
void TakeGlobalOptions(CLI::App& app, const CommandWalk& walk) {
  std::vector<std::string> line = {"version"};  // a command without required options
  for (const auto& [option, value] : walk.values) {
    const auto& of_root = app.get_options();
    if (std::find(of_root.begin(), of_root.end(), option) == of_root.end()) continue;
    line.push_back(absl::StrCat("--", option->get_lnames().front(), "=", value));
  }
  std::reverse(line.begin(), line.end());
  try {
    app.parse(line);
  } catch (const CLI::ParseError&) {
    return;
  }
}

void AddOptions(const CLI::App& app, Candidates* found) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames())
      found->Add("--" + name, FirstLine(option->get_description()));
  }
}

// True if a file name is expected.
bool AddValues(CLI::App& app, const CommandWalk& walk, const CLI::Option& option, Session& session,
               Candidates* found) {
  for (const std::string& choice : Choices(option)) found->Add(choice);
  const std::string noun = NounOfValue(*walk.place, option);
  if (noun.empty()) return TakesFile(option);
  TakeGlobalOptions(app, walk);
  std::string prefix = found->prefix();
  const bool typed = absl::StartsWith(prefix, noun + "/");  // "job/llama", as -o name prints
  if (typed) prefix = prefix.substr(noun.size() + 1);
  for (const std::string& name : NamesOf(session, noun, prefix, WantsActive(*walk.place)))
    found->Add(typed ? absl::StrCat(noun, "/", name) : name, noun);
  return false;
}

// The next positional argument; null if there is none.
const CLI::Option* NextPositional(const CommandWalk& walk) {
  const CLI::Option* last = nullptr;
  size_t at = 0;
  for (const CLI::Option* option : walk.place->get_options()) {
    if (!option->get_positional()) continue;
    last = option;
    if (at++ == walk.positionals.size()) return option;
  }
  const bool takes_more = last != nullptr && last->get_items_expected_max() > 1;
  return takes_more ? last : nullptr;
}

// True if a file name is expected.
bool AddWords(CLI::App& app, const CommandWalk& walk, Session& session, Candidates* found) {
  if (absl::StartsWith(found->prefix(), "-")) {
    AddOptions(*walk.place, found);
    if (walk.place != &app) AddOptions(app, found);
    return false;
  }
  if (walk.positionals.empty()) {
    for (const CLI::App* command :
         walk.place->get_subcommands([](const CLI::App*) { return true; }))
      if (!command->get_group().empty())
        found->Add(command->get_name(), FirstLine(command->get_description()));
  }
  const CLI::Option* next = NextPositional(walk);
  return next != nullptr && AddValues(app, walk, *next, session, found);
}

// The words before the last one, with the noun first ("get job" -> "job get"). They stay as they
// are if the last one may still become the type.
std::vector<std::string> WordsBefore(const CLI::App& app, std::vector<std::string> words) {
  if (words.empty()) return words;
  const absl::StatusOr<std::vector<std::string>> ordered = NounFirst(app, words);
  if (ordered.ok() && !ordered->empty() && ordered->back() == words.back()) words = *ordered;
  words.pop_back();
  return words;
}

}  // namespace

ExitCode Complete(CLI::App& app, const std::vector<std::string>& words, Session& session) {
  const std::string current = words.empty() ? "" : words.back();
  const CommandWalk walk = WalkCommandLine(app, WordsBefore(app, words));
  const size_t equals = absl::StartsWith(current, "--") ? current.find('=') : std::string::npos;
  if (walk.dashes) {
    session.out() << kFiles << "\n";
    return ExitCode::kOk;
  }
  const CLI::Option* option = walk.pending;
  size_t value_at = 0;
  if (option == nullptr && equals != std::string::npos) {
    option = FindOption(*walk.place, current.substr(0, equals));
    value_at = equals + 1;
    if (option == nullptr) return ExitCode::kOk;
  }
  Candidates found(current.substr(0, value_at), current.substr(value_at));
  const bool files = option != nullptr ? AddValues(app, walk, *option, session, &found)
                                       : AddWords(app, walk, session, &found);
  found.Print(session.out());
  if (files) session.out() << kFiles << "\n";
  return ExitCode::kOk;
}

void AddCompletionCommand(CLI::App& app, Session& session) {
  CLI::App* completion = app.add_subcommand("completion", "print a script for shell completion");
  completion->require_subcommand(1);
  const auto add = [&](const char* shell, const char* help, const char* script) {
    AddCommand(*completion, session, shell, help, [script](Session& s) {
      s.out() << script;
      return ExitCode::kOk;
    });
  };
  add("bash", "for bash: source <(berth completion bash)", kBashCompletion);
  add("zsh", "for zsh: source <(berth completion zsh), after compinit", kZshCompletion);
  add("fish", "for fish: berth completion fish | source", kFishCompletion);
}

}  // namespace berth
