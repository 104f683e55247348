#include "clients/cli/matched.h"

#include <fnmatch.h>

#include <algorithm>
#include <istream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace berth {
namespace {

bool IsYes(const std::string& answer) {
  const std::string word = absl::AsciiStrToLower(answer);
  return word == "y" || word == "yes";
}

// "2 jobs".
std::string CountText(const MatchedChange& change, const Names& names) {
  return absl::StrCat(names.size(), " ", change.noun, names.size() == 1 ? "" : "s");
}

bool ScriptMayChange(Session& session, const MatchedChange& change, const Names& names) {
  if (change.every.empty()) return true;
  session.err() << "berth: " << change.verb << " " << change.every << " of "
                << CountText(change, names) << " needs --yes in a script\n";
  return false;
}

bool MayChange(Session& session, const MatchedChange& change, const Names& names) {
  const CliIo& io = session.io();
  if (change.yes) return true;
  if (!io.in_is_terminal) return ScriptMayChange(session, change, names);
  if (names.size() < 2) return true;
  constexpr size_t kShown = 5;
  const Names shown(names.begin(),
                    names.begin() + static_cast<ptrdiff_t>(std::min(kShown, names.size())));
  session.err() << change.verb << " " << CountText(change, names) << " ("
                << absl::StrJoin(shown, ", ") << (names.size() > kShown ? ", ..." : "")
                << ")? [y/N] " << std::flush;
  std::string answer;
  if (io.in != nullptr) std::getline(*io.in, answer);
  if (IsYes(answer)) return true;
  session.err() << "berth: nothing was done\n";
  return false;
}

}  // namespace

bool IsPattern(const std::string& name) { return name.find_first_of("*?[") != std::string::npos; }

bool MatchesEveryName(const std::string& pattern) {
  return pattern.find('*') != std::string::npos &&
         pattern.find_first_not_of("*?") == std::string::npos;
}

bool NameMatches(const Names& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

ExitCode RunMatched(Session& session, const MatchedChange& change, const Names& names,
                    const std::function<ExitCode(Session&, const Names&)>& run) {
  if (!MayChange(session, change, names)) return ExitCode::kUsage;
  const ExitCode done = run(session, names);
  if (names.size() > 1) {
    session.err() << "berth: " << change.verb << ": " << CountText(change, names)
                  << (done == ExitCode::kOk ? "" : ", some failed") << "\n";
  }
  return done;
}

}  // namespace berth
