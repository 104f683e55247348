// Data for plots of replays, as CSV files that gnuplot and people can read. The first line names
// the columns.
#ifndef BERTH_OFFLINE_REPLAY_PLOT_DATA_H_
#define BERTH_OFFLINE_REPLAY_PLOT_DATA_H_

#include <cstddef>
#include <string>
#include <vector>

#include "offline/replay/replay.h"

namespace berth::replay {

// A replay to be plotted, with its record.
struct PlottedRun {
  std::string name;  // of its policy
  std::string slug;  // the name as a unique part of file names
  ReplayRun run;
};

// The unit of times, by the length of the longest replay.
struct TimeAxis {
  std::string unit;  // "days", "hours", ...
  double seconds = 1;
  double end = 0;  // in units
};
TimeAxis AxisOf(const std::vector<PlottedRun>& runs);

inline constexpr size_t kPlotSteps = 400;  // of time: the plot shows the mean of each
inline constexpr size_t kMaxShownOwners = 7;
inline constexpr size_t kMaxShownRows = 64;

// time, use of the main resource in per cent, unusable part of the GPUs in per cent, waiting jobs.
std::string UtilisationCsv(const Record& record, const TimeAxis& axis);

// value, and the per cent of jobs at or below it, and above it; waits in seconds, slowdowns without
// unit. Only jobs that ended.
std::string WaitCsv(const Workload& workload, const ReplayRun& run);
std::string SlowdownCsv(const Workload& workload, const ReplayRun& run);

// Names of the owners with the greatest shares of all runs, at most kMaxShownOwners.
std::vector<std::string> ShownOwners(const std::vector<PlottedRun>& runs, OwnerKind kind);
// time, then a column for each of these: its dominant share in per cent.
std::string SharesCsv(const ReplayRun& run, OwnerKind kind, const std::vector<std::string>& owners,
                      const TimeAxis& axis);

// Rows of a timeline: GPUs of a small cluster, otherwise nodes, HyperNodes or blocks of nodes.
struct TimelineRows {
  std::string what;  // "GPU", "node", "domain", "block of 20 nodes"
  std::vector<std::string> names = {};
  std::vector<size_t> of_node = {};  // by index in Record::nodes; for GPUs: its first row
};
TimelineRows RowsOf(const Record& record);
// time, row, in use in per cent (empty while no node of it is ready); for each step and row.
std::string HeatCsv(const Record& record, const TimelineRows& rows, const TimeAxis& axis);
// start, end, row, number of the job, its name; for clusters with Record::spans.
std::string SpansCsv(const Workload& workload, const Record& record, const TimelineRows& rows,
                     const TimeAxis& axis);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_PLOT_DATA_H_
