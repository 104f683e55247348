#include "clients/replay/workload.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace berth::replay {

std::string NameOfRecord(int64_t record) { return absl::StrCat("job-", record); }

void SortBySubmit(Workload* workload) {
  std::stable_sort(workload->jobs.begin(), workload->jobs.end(),
                   [](const TraceJob& a, const TraceJob& b) { return a.submit < b.submit; });
}

}  // namespace berth::replay
