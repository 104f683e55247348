// What a job asks for: the options of sbatch, srun and salloc, and the job of Berth that they mean.
//
// The job has one group, "node", with one task for each node, which holds what the job gets there:
// CPUs, memory and devices of all Slurm tasks of that node. Each is on a node of its own, and they
// are a gang. The task of rank 0 runs the batch script; the others hold their places for steps.
#ifndef BERTH_CLIENTS_SLURM_ALLOCATION_H_
#define BERTH_CLIENTS_SLURM_ALLOCATION_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "berth/cli/v1/slurm.pb.h"
#include "berth/config/v1/slurm.pb.h"
#include "berth/v1/job.pb.h"
#include "berth/v1/node.pb.h"
#include "clients/slurm/options.h"
#include "clients/slurm/values.h"

namespace berth {

inline constexpr char kNodeGroup[] = "node";
inline constexpr char kCommentAnnotation[] = "slurm/comment";
inline constexpr char kDirectoryAnnotation[] = "slurm/directory";
inline constexpr char kOutputAnnotation[] = "slurm/output";
inline constexpr char kErrorAnnotation[] = "slurm/error";
inline constexpr char kCommandAnnotation[] = "slurm/command";

struct Dependency {
  v1::JobDependency::Condition condition = v1::JobDependency::AFTER_OK;
  std::string number;
};

struct GpuCount {
  int count = 0;
  std::string model;  // "": any
};

struct AllocationRequest {
  std::string name, account, comment, partition, qos, directory;
  int nodes = 0;            // 0: as many as the tasks need
  int tasks = 0;            // 0: one, or --ntasks-per-node on each node
  int tasks_per_node = 0;   // 0: as few nodes as can hold the tasks
  int cpus_per_task = 0;    // 0: one
  bool cpus_given = false;  // set by CompleteSizes
  int64_t memory_per_node = 0, memory_per_cpu = 0, memory_per_gpu = 0;  // 0: the queue's default
  int64_t scratch = 0;
  GpuCount gpus, gpus_per_node, gpus_per_task;
  int cpus_per_gpu = 0;
  std::map<std::string, int64_t> counters;  // other --gres
  std::optional<absl::Duration> time;       // InfiniteDuration: none
  std::optional<absl::Time> begin;
  std::vector<Dependency> dependencies;
  std::vector<std::string> features, excluded;
  std::optional<int32_t> priority;
  bool hold = false;
  std::optional<v1::Array> array;
  bool requeue = true;
  std::optional<SignalBefore> signal;
};

struct AllocationContext {
  const config::v1::SlurmConfig& config;
  absl::Time now;
  absl::TimeZone zone;
};

// Every wrong value is an INVALID_ARGUMENT that names the option and where it was written.
absl::StatusOr<AllocationRequest> ReadAllocation(const SlurmArguments& arguments,
                                                 const AllocationContext& context);

// The nodes that tasks without --nodes get: as few as possible, each with the same number of tasks.
// Sets nodes and tasks_per_node. FAILED_PRECONDITION if no nodes can hold them.
absl::Status SpreadTasks(const std::vector<v1::Node>& nodes, AllocationRequest* request);
// Asks which nodes there are only if it matters.
bool NeedsNodes(const AllocationRequest& request);

// Completes the numbers: nodes, tasks, tasks_per_node and cpus_per_task are set from then on.
absl::Status CompleteSizes(AllocationRequest* request);

// A job without a name; its number is its uid, and Berth calls it job-UID. `batch` gets what the
// nodes must know of the request. `name_of` finds the name of a job by its number.
using NameOfNumber = absl::FunctionRef<absl::StatusOr<std::string>(const std::string&)>;
absl::StatusOr<v1::Job> JobOf(const AllocationRequest& request, const AllocationContext& context,
                              const std::string& user, NameOfNumber name_of,
                              cli::v1::SlurmBatch* batch);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_ALLOCATION_H_
