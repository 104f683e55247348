// Queues as the scheduler keeps them.
#ifndef BERTH_CORE_MODEL_QUEUE_H_
#define BERTH_CORE_MODEL_QUEUE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/model/ids.h"
#include "core/model/job.h"
#include "core/model/resources.h"

namespace berth {

struct QueueSpec {
  std::string name;
  QueueId parent = kRootQueue;
  std::vector<NamedAmount>
      limit;             // sorted by name; "cpu" in milli-cores, "memory" in bytes; absent = no cap
  int32_t max_jobs = 0;  // that have not ended; 0 = no bound
  int32_t max_running_jobs = 0;  // that hold resources; 0 = no bound
  std::map<std::string, std::string> labels;
  bool operator==(const QueueSpec&) const = default;
};

struct Queue {
  QueueId id;
  QueueSpec spec;
  bool open = true;
  uint64_t revision = 0;
  // Derived; sums run over the whole subtree.
  Resources limit;                // INT64_MAX where there is none
  Resources allocated;            // of tasks that occupy
  Resources pending;              // of tasks that wait
  int64_t active_jobs = 0;        // not ended
  int64_t running_jobs = 0;       // hold resources
  int64_t held_jobs = 0;          // Held or Suspended
  int64_t jobs = 0;               // all that are not deleted
  std::vector<QueueId> children;  // by id
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_QUEUE_H_
