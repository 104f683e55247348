// Runs tasks as processes, each with its own berth-supervisor (supervisor/supervisor.h).
//
//   STATE/tasks/JOB-TASK-ATTEMPT/   spec lock control status hostfile work/ stdout.* stderr.*
//                                   order.* notify progress/ berth/ door/, and the files of
//                                   isolation.h
//   STATE/lease                     deadline of strict tasks; supervisors watch it
//   STATE/lease.longer              deadline of a longer lease; 0 or absent: none
//
// The runner watches an epoll descriptor (pidfds of supervisors, inotify for their status files)
// and never polls. Adoption after a restart of the agent: if the lock is held, the supervisor
// lives; otherwise the status file has the end; without one, the supervisor was lost. What remains
// of the task is then killed before that is reported: as a refused start if the supervisor had not
// yet recorded that the command begins.
#ifndef BERTH_CLIENTS_AGENT_PROCESS_RUNNER_H_
#define BERTH_CLIENTS_AGENT_PROCESS_RUNNER_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/agent/disk_watch.h"
#include "clients/agent/environment.h"
#include "clients/agent/image_unpacker.h"
#include "clients/agent/interfaces.h"
#include "clients/agent/isolation.h"
#include "clients/agent/port_allocator.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {

class TaskSockets;

// Not thread-safe. The destructor leaves the tasks running.
class ProcessRunner final : public TaskRunner {
 public:
  struct Options {
    std::string state_directory;  // absolute, exists
    std::string supervisor;       // path of berth-supervisor
    std::string image_program;    // path of berth-image
    int first_port = 20000;
    int last_port = 24999;
    int64_t log_file_bytes = int64_t{16} << 20;
    int64_t log_files = 4;
    EnvironmentContext context;  // the node's part
    std::shared_ptr<const Isolation> isolation;
    int64_t min_free_bytes = 0;  // with less free, a disk counts as nearly full
    absl::Duration disk_interval = kDiskLookInterval;
    int64_t kept_output_bytes = 0;   // of all ended tasks; 0: a tenth of the file system
    TaskSockets* sockets = nullptr;  // null: tasks have none; outlives the runner
    // NVIDIA's program; empty: what tasks have on GPUs cannot be saved. And
    // SupervisorSpec::gpu_files.
    std::string cuda_checkpoint;
    std::vector<std::string> gpu_files;
  };
  // NOT_FOUND without the supervisor program; otherwise errors of the state directory.
  static absl::StatusOr<std::unique_ptr<ProcessRunner>> Create(Options options);
  ~ProcessRunner() override;

  void Prepare(const TaskId& id, const v1::TaskLaunch& launch, std::optional<int> port) override;
  void Discard(const TaskId& id) override;
  void Start(const TaskId& id, const v1::TaskLaunch& launch, const v1::Start& start) override;
  void Kill(const TaskId& id, const std::string& signal, absl::Duration grace,
            v1::TaskReport::Cause cause) override;
  void Signal(const TaskId& id, const std::string& signal) override;
  void Freeze(const TaskId& id, int64_t request, bool saves_devices) override;
  void Adopt(const agent::v1::TaskRecord& record) override;
  void Remove(const TaskId& id) override;
  // Call after adopting everything that an earlier agent left: releases images of all other tasks,
  // and shared memory of tasks that do not run.
  void CleanUp(const std::set<TaskId>& tasks);
  bool SetLease(absl::Duration soon, absl::Duration deadline) override;
  // Whether tasks that start from now on get variables that hide GPUs from them.
  void SetHasGpus(bool has_gpus) { options_.context.has_gpus = has_gpus; }

  // From DiskWatch. From any thread.
  bool DiskIsExhausted() const { return disk_->Exhausted(); }

  // Readable when Poll has something to do.
  int fd() const { return epoll_fd_; }
  // Collects events since the last call, in order.
  std::vector<TaskEvent> Poll();
  // How long until Poll must be called even if fd() is not readable.
  absl::Duration PollInterval() const;

  std::string tasks_directory() const { return options_.state_directory + "/tasks"; }
  // The lease written by the last agent process, if it was in this boot.
  static std::optional<absl::Duration> ReadLease(const std::string& state_directory);

 private:
  struct Live {
    pid_t supervisor = 0;  // also its session
    bool child = false;    // child of this process: to be reaped
    int pid_fd = -1;
    int control_fd = -1;
    int watch = -1;
    bool running = false;                // kRunning was reported
    bool begun = false;                  // the command is known to have begun
    std::optional<int64_t> frozen = {};  // as SupervisorStatus; absent: nothing was reported
    int stop_signal = 0;
    absl::Duration stop_grace;
    std::string blame;  // the reason for ending it
  };

  explicit ProcessRunner(Options options);
  absl::Status Init();
  std::string Directory(const TaskId& id) const;
  absl::Status MakeDirectory(const TaskId& id, const v1::TaskLaunch& launch);
  absl::Status Spawn(const TaskId& id, const SupervisorSpec& spec, Live* live);
  absl::StatusOr<SupervisorSpec> MakeSpec(const TaskId& id, const v1::TaskLaunch& launch,
                                          const v1::Start& start) const;
  // argv, env and directory of the task's command, or of a container in its place.
  absl::Status FillCommand(const TaskId& id, const v1::TaskLaunch& launch, const v1::Start& start,
                           const std::string& directory, const TaskUser& user,
                           EnvironmentContext context, SupervisorSpec* spec) const;
  // Writes the specifications of the task's containers, and adds their names to the task's.
  absl::Status FillContainers(const TaskId& id, const v1::TaskLaunch& launch,
                              const v1::Start& start, SupervisorSpec* task) const;
  Environment HookEnvironment(const TaskId& id, const v1::TaskLaunch& launch,
                              const v1::Start& start) const;
  void RemoveAll(const TaskId& id);
  void Watch(const TaskId& id, Live* live);
  bool Pin(const TaskId& id, pid_t pid, Live* live);
  void CheckStatus(const TaskId& id);
  void OnSupervisorEnd(const TaskId& id);
  void OnSupervisorLost(const TaskId& id, Live& live);
  bool NeverBegan(const TaskId& id, const Live& live) const;
  void ReportRunning(const TaskId& id, const SupervisorStatus& status, Live& live);
  void ReportFrozen(const TaskId& id, const SupervisorStatus& status, Live& live);
  void Unpin(Live& live);
  void Finish(const TaskId& id, TaskEvent event);
  void Refuse(const TaskId& id, const absl::Status& status);
  // Gets the images of a task one after the other: its own, and those of its containers.
  struct Unpacking {
    TaskEvent prepared;  // sent once all are ready
    v1::TaskLaunch launch;
    int image = 0;  // 0: its own; N: that of container N - 1
  };
  absl::Status MakeReady(const TaskId& id, const v1::TaskLaunch& launch, TaskEvent prepared);
  absl::Status GetNextImage(const TaskId& id, Unpacking& unpacking);
  std::string ImageDirectory(const TaskId& id, const Unpacking& unpacking) const;
  void OnImage(const ImageUnpacker::Result& result, Unpacking& unpacking);
  void PollImages();
  void Write(const TaskId& id, const std::string& line);
  void Command(const TaskId& id, int signal, absl::Duration grace, v1::TaskReport::Cause cause,
               const std::string& reason);
  void FillSaving(const v1::TaskLaunch& launch, SupervisorSpec* spec) const;
  bool OpenDoor(const TaskId& id, const std::string& directory, uid_t user) const;
  void WatchDisk(const TaskId& id, const v1::TaskLaunch& launch,
                 const std::vector<std::string>& groups);
  void EndCulprits();

  Options options_;
  PortAllocator ports_;
  int epoll_fd_ = -1;
  int inotify_fd_ = -1;
  int lease_fd_ = -1;
  int longer_fd_ = -1;
  int64_t longer_lease_ns_ = -1;  // as written; -1: not by this process
  std::map<TaskId, Live> live_;
  std::map<int, TaskId> by_watch_;
  std::map<int, TaskId> by_pid_fd_;
  std::unique_ptr<ImageUnpacker> images_;
  std::map<TaskId, Unpacking> unpacking_;
  std::set<TaskId> recheck_;  // without a descriptor: checked every second
  std::vector<TaskEvent> events_;
  int disk_fd_ = -1;                 // readable when the watch has found culprits
  std::unique_ptr<DiskWatch> disk_;  // last, because its thread uses the other members
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_PROCESS_RUNNER_H_
