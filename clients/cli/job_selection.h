// Selects the jobs of a command by names, name patterns and filters.
//
//   berth job cancel a 'train-*'          these jobs
//   berth job cancel --user ann           all active jobs of ann
//   berth job cancel 'train-*' --queue q  jobs that match both
#ifndef BERTH_CLIENTS_CLI_JOB_SELECTION_H_
#define BERTH_CLIENTS_CLI_JOB_SELECTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "clients/cli/by_name.h"

namespace berth {

// The jobs that a command accepts if --state is not given: cancel takes no job that has ended.
enum class Among { kAny, kActive, kEnded, kSuspended };

struct JobSelection {
  Names names;  // or shell patterns; none: any name
  std::string queue;
  std::string user;
  std::string owner;
  std::string node;
  std::vector<std::string> states;
  std::vector<std::string> labels;
  std::string since;     // submitted within this time, as text
  std::string series;    // made by this array or schedule
  bool members = false;  // also jobs that arrays and schedules made
  bool paused = false;   // only those
  bool all = false;
  bool yes = false;  // do not ask for confirmation

  bool has_filter() const {
    return !queue.empty() || !user.empty() || !owner.empty() || !node.empty() || !states.empty() ||
           !labels.empty() || !since.empty() || !series.empty() || paused;
  }
};

// --queue, --user, --owner, --node, --state, --paused, --label, --since, --of.
void AddJobFilters(CLI::App& command, JobSelection* selection);

// The selected jobs that are `among`, newest first, at most `limit`.
absl::StatusOr<std::vector<v1::Job>> FindJobs(Session& session, const JobSelection& selection,
                                              Among among, size_t limit = SIZE_MAX);

// The names of the selected jobs. Exact names need no call to the server. Codes other than kOk:
// nothing was selected, and standard error says why.
ExitCode SelectJobs(Session& session, const JobSelection& selection, Among among, Names* chosen);

// A verb and the jobs that it accepts.
struct SelectingVerb {
  std::string name;
  Among among = Among::kAny;
  bool changes = false;  // matches of patterns and filters need confirmation (matched.h)
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
