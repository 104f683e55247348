// What stays on this node between two attempts of a job (JobSpec.keep).
//
//   STATE/keep/JOB/disk     the directory BERTH_KEEP, of the task's user; SCRATCH/NODE-keep-JOB if
//                           scratch has a directory of its own
//   STATE/keep/JOB/memory   exists: the job's shared memory (supervisor/shared_memory.h) stays, too
//
// JOB is ToString of the job's TaskId with task and attempt 0, as in STATE/shm.
#ifndef BERTH_CLIENTS_AGENT_KEPT_DIRECTORIES_H_
#define BERTH_CLIENTS_AGENT_KEPT_DIRECTORIES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "berth/v1/agent.pb.h"
#include "clients/agent/interfaces.h"
#include "clients/agent/task_users.h"

namespace berth {

class KeptDirectories final : public KeptFiles {
 public:
  // `disks`: "SCRATCH/NODE-keep-", or empty.
  explicit KeptDirectories(std::string state_directory, std::string disks = "");
  std::vector<TaskId> Jobs() const override;
  void Drop(const TaskId& job) override;

  // Creates what the task keeps, unless an earlier task of its job has.
  absl::Status Make(const TaskId& id, const v1::TaskLaunch& launch, const TaskUser& user) const;
  std::string Disk(const TaskId& id) const;

 private:
  std::string Directory(const TaskId& id) const;

  const std::string state_directory_, disks_;
};

// The same for all tasks of the job.
TaskId JobOf(TaskId id);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_KEPT_DIRECTORIES_H_
