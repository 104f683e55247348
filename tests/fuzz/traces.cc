// Workload logs for replay: SWF and CSV.
#include "core/base/check.h"
#include "offline/replay/csv_workload.h"
#include "offline/replay/swf.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {
namespace {

void Check(const absl::StatusOr<replay::Workload>& workload) {
  if (!workload.ok()) return;
  for (const replay::TraceJob& job : workload->jobs) {
    BERTH_CHECK(job.run > absl::ZeroDuration() && job.requested >= job.run && job.tasks > 0);
  }
}

}  // namespace

void FuzzOne(absl::string_view input) {
  Check(replay::ReadSwf(input, "f", {.one_task = true}));
  Check(replay::ReadSwf(input, "f", {.one_task = false, .processors = 128, .perfect_times = true}));
  const auto columns = replay::ParseColumns("submit=s,run=r");
  Check(replay::ReadCsv(input, "f", *columns));
  // The first line defines the columns, the others are the file.
  const size_t line = std::min(input.find('\n'), input.size());
  const auto named = replay::ParseColumns(input.substr(0, line));
  if (named.ok()) Check(replay::ReadCsv(input.substr(line), "f", *named));
}

}  // namespace berth::fuzz
