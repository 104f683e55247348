// What is plotted of replays, as CSV files that gnuplot and people can read. The first line names
// the columns.
#ifndef BERTH_CLIENTS_REPLAY_PLOT_DATA_H_
#define BERTH_CLIENTS_REPLAY_PLOT_DATA_H_

#include <cstddef>
#include <string>
#include <vector>

#include "clients/replay/replay.h"

namespace berth::replay {

// A replay to be plotted, with its record.
struct PlottedRun {
  std::string name;  // of its policy
  std::string slug;  // the same as part of a file's name, unlike the others'
  ReplayRun run;
};

// How times are shown, by how long the longest replay takes.
struct TimeAxis {
  std::string unit;  // "days", "hours", ...
  double seconds = 1;
  double end = 0;  // in units
};
TimeAxis AxisOf(const std::vector<PlottedRun>& runs);

inline constexpr size_t kPlotSteps = 400;  // of time: what is shown is the mean of each
inline constexpr size_t kMaxShownOwners = 7;
inline constexpr size_t kMaxShownRows = 64;

// time, of the main resource the part in use and the unusable part of the GPUs in per cent, waiting
// jobs.
std::string UtilisationCsv(const Record& record, const TimeAxis& axis);

// value, and the per cent of jobs at or below it, and above it; waits in seconds, slowdowns as they
// are. Values are of jobs that ended.
std::string WaitCsv(const Workload& workload, const ReplayRun& run);
std::string SlowdownCsv(const Workload& workload, const ReplayRun& run);

// Those that had the greatest shares, at most kMaxShownOwners, of all runs: names.
std::vector<std::string> ShownOwners(const std::vector<PlottedRun>& runs, OwnerKind kind);
// time, then a column for each of these: its dominant share in per cent.
std::string SharesCsv(const ReplayRun& run, OwnerKind kind, const std::vector<std::string>& owners,
                      const TimeAxis& axis);

// Rows of a timeline: GPUs of a small cluster, else nodes, HyperNodes, or nodes by the dozen.
struct TimelineRows {
  std::string what;  // "GPU", "node", "domain", "block of 20 nodes"
  std::vector<std::string> names = {};
  std::vector<size_t> of_node = {};  // by index in Record::nodes; of GPUs: the node's first row
};
TimelineRows RowsOf(const Record& record);
// time, row, in use in per cent (empty while no node of it is ready); for each step and row.
std::string HeatCsv(const Record& record, const TimelineRows& rows, const TimeAxis& axis);
// start, end, row, number of the job, its name; for clusters with Record::spans.
std::string SpansCsv(const Workload& workload, const Record& record, const TimelineRows& rows,
                     const TimeAxis& axis);

}  // namespace berth::replay

#endif  // BERTH_CLIENTS_REPLAY_PLOT_DATA_H_
