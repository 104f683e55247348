// The figures of a replay (docs/developers/replay.md, "Figures").
#ifndef BERTH_OFFLINE_REPLAY_REPLAY_RESULT_H_
#define BERTH_OFFLINE_REPLAY_REPLAY_RESULT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "berth/sim/v1/replay.pb.h"
#include "offline/replay/fill.h"
#include "offline/replay/replay.h"

namespace berth::replay {

// Shorter runs count as this long in slowdowns.
inline constexpr Duration kSlowdownBound = absl::Seconds(10);

// For a job that has ended.
double SlowdownOf(const TraceJob& job, const Outcome& outcome);

// Nearest rank: the least value with at least that share of all values at or below it. All 0
// without values.
sim::v1::Distribution DistributionOf(std::vector<double> values);

sim::v1::PolicyResult Figures(const Workload& workload, const ReplayRun& run,
                              const std::string& name);

// A line per job, in the order of the workload, with a first line that names the columns: name,
// submit, wait, run, end, slowdown, queue, user, tasks, tier, preemptions, failures, last_start,
// nodes, devices; jobs that never started have empty fields.
std::string JobsCsv(const Workload& workload, const ReplayRun& run);

// As "json", "yaml" or "table".
sim::v1::FillPolicy Figures(const std::vector<FillRun>& runs, const std::string& name);
std::string Printed(const sim::v1::FillResult& result, absl::string_view format);
// A line per job that arrived, of each run in turn: seed, arrival, name, cpu_millis, memory
// (bytes), gpu_milli, node, devices. A dropped job has no node.
std::string FillJobsCsv(const Workload& workload, const std::vector<FillRun>& runs);

// The owners that tables list one by one.
enum class TableOf : uint8_t { kAll, kQueues, kUsers };
std::string Printed(const sim::v1::ReplayResult& result, absl::string_view format,
                    TableOf of = TableOf::kAll);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_REPLAY_RESULT_H_
