// Changes of everything that patterns and filters match: confirmed first, counted afterwards.
#ifndef BERTH_CLIENTS_CLI_MATCHED_H_
#define BERTH_CLIENTS_CLI_MATCHED_H_

#include <functional>
#include <string>

#include "clients/cli/by_name.h"

namespace berth {

// "x*", "job-?", "a[0-9]".
bool IsPattern(const std::string& name);
// A pattern of '*' and '?' alone: "*", "?*".
bool MatchesEveryName(const std::string& pattern);
// Whether a name is one of these names, or matches one of these patterns.
bool NameMatches(const Names& patterns, const std::string& name);

// What is changed, and how it was selected.
struct MatchedChange {
  std::string verb;
  std::string noun;   // "job"
  std::string every;  // "--all" or "'*'", if nothing else restricts the selection; otherwise ""
  bool yes = false;   // do not ask for confirmation
};

// Runs `run` with the names, which were matched, not given. On a terminal, more than one needs
// confirmation. A script is not asked, but needs --yes for `every`. kUsage if nothing was done.
ExitCode RunMatched(Session& session, const MatchedChange& change, const Names& names,
                    const std::function<ExitCode(Session&, const Names&)>& run);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_MATCHED_H_
