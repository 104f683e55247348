// The content of a journal: the fold of its records.
#ifndef BERTH_CLIENTS_AGENT_JOURNAL_STATE_H_
#define BERTH_CLIENTS_AGENT_JOURNAL_STATE_H_

#include <algorithm>
#include <map>

#include "berth/agent/v1/journal.pb.h"
#include "clients/agent/task_id.h"

namespace berth {

// Version 1 has no incarnations; a journal has version 1 until its agent has seen one.
inline constexpr uint32_t kJournalVersion = 2;

struct JournalState {
  agent::v1::Identity identity;
  std::map<TaskId, agent::v1::TaskRecord> tasks;

  void Apply(const agent::v1::JournalRecord& record) {
    if (record.has_identity()) {
      const uint64_t used = identity.last_report_id();
      identity = record.identity();
      identity.set_last_report_id(std::max(used, identity.last_report_id()));
    } else if (record.has_task()) {
      tasks[ToTaskId(record.task().key())] = record.task();
      identity.set_last_report_id(
          std::max(identity.last_report_id(), record.task().report().report_id()));
    } else if (record.has_dropped()) {
      tasks.erase(ToTaskId(record.dropped()));
    }
  }
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_JOURNAL_STATE_H_
