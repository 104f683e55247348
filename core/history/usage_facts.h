// What the fold of the log yields (usage_fold.h): figures of periods, jobs that ended, and the part
// of its own state that changed. Plain data, with names instead of ids.
#ifndef BERTH_CORE_HISTORY_USAGE_FACTS_H_
#define BERTH_CORE_HISTORY_USAGE_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/btree_set.h"
#include "core/history/meter.h"
#include "core/history/usage_keys.h"
#include "core/model/ids.h"
#include "core/model/job.h"

namespace berth {

enum class HistoryPeriod : uint8_t { kMinute, kHour };

template <class M>
struct NamedMeter {
  std::string resource;
  M meter;
};

// A row of a period: closed, and then final and without rates; or open.
struct UsageRow {
  HistoryPeriod period = HistoryPeriod::kMinute;
  int64_t begin_ms = 0;
  UsageKey key;
  std::string model;  // of devices; of minutes always ""
  bool open = false;
  std::vector<NamedMeter<UsageMeter>> meters;
};
struct CapacityRow {
  HistoryPeriod period = HistoryPeriod::kMinute;
  int64_t begin_ms = 0;
  std::string model;
  bool open = false;
  std::vector<NamedMeter<CapacityMeter>> meters;
};

// Counts of a job's life so far.
struct JobLife {
  Time first_start = absl::InfinitePast();
  uint32_t starts = 0;
  uint32_t evictions = 0;
  int32_t exit_code = 0;  // of the last task that exited with another code than 0
  uint8_t exit_signal = 0;
  bool operator==(const JobLife&) const = default;
};

struct EndedJobFacts {
  JobId id;
  Time submit;
  UsageKey key;
  JobLife life;
  JobStatus status;  // the final one
  std::vector<NamedMeter<UsageMeter>> meters;
};

struct HistoryChanges {
  std::vector<UsageRow> usage;
  std::vector<CapacityRow> capacity;
  std::vector<EndedJobFacts> ended;
  // Of the fold's state: not there any more = delete.
  absl::btree_set<QueueId> queues;
  absl::btree_set<NodeId> nodes;
  absl::btree_set<JobId> jobs;
  absl::btree_set<TaskKey> tasks;
  size_t size() const {
    return usage.size() + capacity.size() + ended.size() + queues.size() + nodes.size() +
           jobs.size() + tasks.size();
  }
};

}  // namespace berth

#endif  // BERTH_CORE_HISTORY_USAGE_FACTS_H_
