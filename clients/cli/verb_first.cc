#include "clients/cli/verb_first.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/resource_names.h"

namespace berth {
namespace {

using Words = std::vector<std::string>;

std::vector<const CLI::App*> Commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// The command with this name or alias; null if there is none.
const CLI::App* Command(const CLI::App& app, const std::string& word) {
  for (const CLI::App* command : Commands(app)) {
    if (command->check_name(word)) return command;
  }
  return nullptr;
}

// The nouns that have `verb`. The shells of completion are not verbs.
std::vector<const CLI::App*> NounsWith(const CLI::App& app, const std::string& verb) {
  std::vector<const CLI::App*> nouns;
  for (const CLI::App* noun : Commands(app)) {
    if (noun->get_name() == "completion") continue;
    if (Command(*noun, verb) != nullptr) nouns.push_back(noun);
  }
  return nouns;
}

// The commands whose options may follow `verb`, including `list`: `get` without names becomes
// `list`.
std::vector<const CLI::App*> PlacesOf(const CLI::App& app, const std::string& verb,
                                      const std::vector<const CLI::App*>& nouns) {
  std::vector<const CLI::App*> places = {&app};
  for (const CLI::App* noun : nouns) {
    for (const char* also : {verb.c_str(), "list"}) {
      const CLI::App* place = also == verb || verb == "get" ? Command(*noun, also) : nullptr;
      if (place != nullptr) places.push_back(place);
    }
  }
  return places;
}

// Whether `word` is an option of one of `places` that takes the next word as its value.
bool TakesNext(const std::string& word, const std::vector<const CLI::App*>& places) {
  for (const CLI::App* place : places) {
    const CLI::Option* option = place->get_option_no_throw(word);
    if (option != nullptr) return option->get_items_expected_max() > 0;
  }
  return false;
}

// Index of the first word from `from` on that is neither an option nor a value of one; the size of
// `words` if there is none.
size_t NextWord(const Words& words, size_t from, const std::vector<const CLI::App*>& places) {
  for (size_t i = from; i < words.size(); ++i) {
    if (words[i].size() < 2 || words[i][0] != '-') return i;
    if (TakesNext(words[i], places)) ++i;
  }
  return words.size();
}

absl::Status NoType(const std::string& verb, const std::string& name,
                    const std::vector<const CLI::App*>& nouns) {
  std::vector<std::string> commands;
  for (const CLI::App* noun : nouns) {
    commands.push_back(
        absl::StrCat("berth ", noun->get_name(), " ", verb, name.empty() ? "" : " ", name));
  }
  if (commands.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", verb, "\" of what? ", absl::StrJoin(commands, ", or "),
        name.empty() ? "" : absl::StrCat("; TYPE/NAME works too: berth ", verb, " job/", name)));
  }
  return absl::InvalidArgumentError(absl::StrCat("did you mean: ", commands[0]));
}

}  // namespace

absl::StatusOr<Words> NounFirst(const CLI::App& app, Words words) {
  const size_t first = NextWord(words, 0, {&app});
  if (first == words.size()) return words;
  const std::string verb = words[first];
  if (Command(app, verb) != nullptr) return words;
  if (!NounOf(verb).empty()) {
    words[first] = NounOf(verb);
    return words;
  }
  const std::vector<const CLI::App*> nouns = NounsWith(app, verb);
  if (nouns.empty()) return words;
  const size_t second = NextWord(words, first + 1, PlacesOf(app, verb, nouns));
  const std::string next = second == words.size() ? "" : words[second];
  const std::string type = next.substr(0, next.find('/'));
  const std::string noun = Command(app, type) == nullptr ? NounOf(type) : type;
  if (noun.empty()) return NoType(verb, next, nouns);
  words[first] = noun;
  if (type == next) words.erase(words.begin() + static_cast<ptrdiff_t>(second));
  const CLI::App* known = Command(app, noun);
  const bool names = NextWord(words, first + 1, PlacesOf(app, verb, {known})) < words.size();
  words.insert(words.begin() + static_cast<ptrdiff_t>(first) + 1,
               verb == "get" && !names ? "list" : verb);
  return words;
}

}  // namespace berth
