// Which jobs a command is about: names, name patterns, and filters.
//
//   berth job cancel a 'train-*'          these
//   berth job cancel --user ann           all active ones of ann
//   berth job cancel 'train-*' --queue q  those that are both
#ifndef BERTH_CLIENTS_CLI_JOB_SELECTION_H_
#define BERTH_CLIENTS_CLI_JOB_SELECTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "clients/cli/by_name.h"

namespace berth {

// What a command can be about, if --state does not say: cancel takes no job that has ended.
enum class Among { kAny, kActive, kEnded, kSuspended };

struct JobSelection {
  Names names;  // or shell patterns; none: any name
  std::string queue;
  std::string user;
  std::string node;
  std::vector<std::string> states;
  std::vector<std::string> labels;
  std::string since;  // submitted in the last so long, as text
  bool all = false;
  bool yes = false;  // do not ask

  bool has_filter() const {
    return !queue.empty() || !user.empty() || !node.empty() || !states.empty() || !labels.empty() ||
           !since.empty();
  }
};

// --queue, --user, --node, --state, --label, --since.
void AddJobFilters(CLI::App& command, JobSelection* selection);

// The jobs of the selection that are `among`, newest first, and at most `limit` of them.
absl::StatusOr<std::vector<v1::Job>> FindJobs(Session& session, const JobSelection& selection,
                                              Among among, size_t limit = SIZE_MAX);

// The names that the command is about. Names as they are given need no question to the server.
// Codes other than kOk: nothing was selected, and standard error says why.
ExitCode SelectJobs(Session& session, const JobSelection& selection, Among among, Names* chosen);

// What a verb does with the jobs that were selected.
struct SelectingVerb {
  std::string name;
  Among among = Among::kAny;
  bool changes = false;  // matches of patterns and filters are asked about (matched.h)
};
ExitCode RunSelected(Session& session, const SelectingVerb& verb, const JobSelection& selection,
                     const std::function<ExitCode(Session&, const Names&)>& run);
// NAME..., --all and, if it changes jobs, --yes.
void AddSelectionNames(CLI::App& command, const SelectingVerb& verb, JobSelection* selection);

// "berth job VERB [NAME...] [filters]": `run` gets the names.
CLI::App* AddSelecting(CLI::App& noun, Session& session, const SelectingVerb& verb,
                       const std::string& description,
                       std::function<ExitCode(Session&, const Names&)> run);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_JOB_SELECTION_H_
