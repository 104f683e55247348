#include "clients/cli/completion.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/command.h"

namespace berth {
namespace {

// Names are asked for with the line's own --server, so that they are those of the cluster that is
// meant.
constexpr char kHead[] = R"sh(# bash completion for berth:  source <(berth completion bash)
_berth_names() {
  "${COMP_WORDS[0]}" "$1" list -o name --request-timeout 1s 2>/dev/null | cut -d/ -f2
}
_berth() {
  local current="${COMP_WORDS[COMP_CWORD]}" path="" word words="" names=""
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path/$word" in
)sh";
constexpr char kTail[] = R"sh(  esac
  if [[ -n $names && $current != -* ]]; then words="$words $(_berth_names "$names")"; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _berth berth
)sh";

struct Place {
  std::string path;  // "/job/list"
  std::vector<std::string> words;
  std::string noun;  // whose names follow, or ""
};

void AddOptions(const CLI::App& app, std::vector<std::string>* words) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words->push_back("--" + name);
  }
}

void Collect(const CLI::App& app, const std::string& path, const std::string& noun,
             std::vector<Place>* places) {
  Place place{path, {}, ""};
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    place.words.push_back(command->get_name());
    Collect(*command, absl::StrCat(path, "/", command->get_name()),
            path.empty() ? command->get_name() : noun, places);
  }
  AddOptions(app, &place.words);
  const CLI::App* root = &app;
  while (root->get_parent() != nullptr) root = root->get_parent();
  if (root != &app) AddOptions(*root, &place.words);
  if (app.get_option_no_throw("NAME") != nullptr) {
    place.noun = noun == "topology" ? "hypernode" : noun;  // whose names it takes
  }
  places->push_back(place);
}

}  // namespace

std::string BashCompletion(const CLI::App& app) {
  std::vector<Place> places;
  Collect(app, "", "", &places);
  std::vector<std::string> paths;
  for (const Place& place : places) {
    if (!place.path.empty()) paths.push_back(place.path);
  }
  std::string script =
      absl::StrCat(kHead, "      ", absl::StrJoin(paths, "|"),
                   ") path=\"$path/$word\" ;;\n    esac\n", "  done\n  case \"$path\" in\n");
  for (const Place& place : places) {
    absl::StrAppend(&script, "    \"", place.path, "\") words=\"", absl::StrJoin(place.words, " "),
                    "\"; names=\"", place.noun, "\" ;;\n");
  }
  return script + kTail;
}

void AddCompletionCommand(CLI::App& app, Session& session) {
  CLI::App* completion =
      app.add_subcommand("completion", "a script that completes this program's command lines");
  completion->require_subcommand(1);
  AddCommand(*completion, session, "bash", "for bash: source <(berth completion bash)",
             [&app](Session& s) {
               s.out() << BashCompletion(app);
               return ExitCode::kOk;
             });
}

}  // namespace berth
