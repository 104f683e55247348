#include "clients/slurm/step_job.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "clients/slurm/job_directory.h"
#include "clients/slurm/job_end.h"
#include "clients/slurm/numbers.h"

namespace berth {
namespace {

std::string Given(const Variables& own, const std::string& name) {
  const auto found = own.find(name);
  return found == own.end() ? "" : found->second;
}

// All that a step is placed by.
struct StepShape {
  int tasks = 0;
  int cpus = 1;  // of each
  int nodes = 1;
};

StepShape ShapeOf(const StepRequest& request, const cli::v1::SlurmBatch& batch, int job_nodes) {
  StepShape shape;
  shape.cpus =
      request.cpus_per_task > 0 ? request.cpus_per_task : std::max(batch.cpus_per_task(), 1);
  const bool other_nodes = request.nodes > 0 && request.nodes != job_nodes;
  if (request.tasks > 0) {
    shape.tasks = request.tasks;
  } else if (request.tasks_per_node > 0) {
    shape.tasks = request.tasks_per_node * (request.nodes > 0 ? request.nodes : job_nodes);
  } else {
    shape.tasks = other_nodes ? request.nodes : batch.tasks();
  }
  shape.nodes = request.nodes > 0 ? request.nodes : job_nodes;
  if (request.tasks_per_node > 0 && request.nodes == 0)
    shape.nodes = (shape.tasks + request.tasks_per_node - 1) / request.tasks_per_node;
  shape.nodes = std::min(shape.nodes, shape.tasks);
  return shape;
}

// Evenly, the first ones one more; as the job has them if the step is the whole job.
std::vector<int> CountsOf(const StepRequest& request, const StepShape& shape,
                          const cli::v1::SlurmBatch& batch, int job_nodes) {
  if (request.tasks_per_node > 0)
    return TasksOfNodes(shape.tasks, request.tasks_per_node, shape.nodes);
  if (shape.tasks == batch.tasks() && shape.nodes == job_nodes)
    return TasksOfNodes(shape.tasks, batch.tasks_per_node(), shape.nodes);
  std::vector<int> counts;
  for (int i = 0; i < shape.nodes; ++i)
    counts.push_back(shape.tasks / shape.nodes + (i < shape.tasks % shape.nodes ? 1 : 0));
  return counts;
}

}  // namespace

absl::StatusOr<StepJob> OwnStepJob(const Variables& own) {
  StepJob job;
  job.directory = Given(own, kDirectoryVariable);
  auto batch = BatchIn(job.directory);
  if (!batch.ok()) return batch.status();
  job.batch = *std::move(batch);
  job.allocation = AllocationOf(own);
  job.name = Given(own, "BERTH_JOB");
  job.inside = true;
  int node = 0;
  if (absl::SimpleAtoi(Given(own, "SLURM_NODEID"), &node)) job.allocation.node = node;
  return job;
}

absl::StatusOr<StepJob> StepJobOf(SlurmContext& context, const std::string& number) {
  const auto numbers = ParseJobNumbers(number);
  if (!numbers.ok()) return numbers.status();
  const absl::StatusOr<Client*> client = context.client();
  if (!client.ok()) return client.status();
  const auto found = JobByNumber(**client, numbers->front());
  if (!found.ok()) return found.status();
  if (found->status().state() != v1::JOB_RUNNING)
    return absl::FailedPreconditionError(absl::StrCat("job ", number, " does not run"));
  StepJob job{.name = found->name()};
  Variables variables;
  for (const v1::EnvVar& variable : found->spec().groups(0).env())
    variables[variable.name()] = variable.value();
  auto batch = BatchOf(variables);
  if (!batch.ok()) return batch.status();
  job.batch = *std::move(batch);
  const auto tasks = TasksOfJob(**client, job.name);
  if (!tasks.ok()) return tasks.status();
  job.allocation.job = absl::StrCat(found->uid());
  job.allocation.nodes.resize(tasks->size());
  for (const v1::Task& task : *tasks) {
    if (task.rank() >= 0 && task.rank() < static_cast<int>(tasks->size()))
      job.allocation.nodes[static_cast<size_t>(task.rank())] = task.node();
  }
  job.allocation.node_name = job.allocation.nodes.empty() ? "" : job.allocation.nodes.front();
  return job;
}

absl::StatusOr<std::vector<std::string>> TaskNames(Client& client, const std::string& job,
                                                   int nodes) {
  const auto tasks = TasksOfJob(client, job);
  if (!tasks.ok()) return tasks.status();
  std::vector<std::string> names(static_cast<size_t>(nodes));
  for (const v1::Task& task : *tasks) {
    if (task.rank() >= 0 && task.rank() < nodes)
      names[static_cast<size_t>(task.rank())] = absl::StrCat(task.group(), "-", task.index());
  }
  return names;
}

absl::StatusOr<std::optional<std::vector<int>>> PlaceStep(const StepRequest& request,
                                                          const cli::v1::SlurmBatch& batch,
                                                          int nodes, const std::vector<int>& held) {
  const StepShape shape = ShapeOf(request, batch, nodes);
  const int cpus = std::max(batch.tasks_per_node(), 1) * std::max(batch.cpus_per_task(), 1);
  const int usable = request.only.empty() ? nodes : static_cast<int>(request.only.size());
  const std::vector<int> counts = CountsOf(request, shape, batch, nodes);
  const int most = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  if (shape.nodes > usable || most * shape.cpus > cpus || shape.tasks < 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("Unable to create step: the job has ", nodes, " nodes with ", cpus,
                     " CPUs each, and the step asks for ", shape.tasks, " tasks of ", shape.cpus,
                     " CPUs on ", shape.nodes, " nodes"));
  }
  std::vector<int> placed(static_cast<size_t>(nodes), 0);
  size_t next = 0;  // of counts, the largest first
  for (size_t node = 0; node < placed.size() && next < counts.size(); ++node) {
    if (!request.only.empty() && !request.only.contains(static_cast<int>(node))) continue;
    const int free = cpus - (node < held.size() ? held[node] : 0);
    if (counts[next] * shape.cpus <= free) placed[node] = counts[next++];
  }
  if (next < counts.size()) return std::optional<std::vector<int>>();
  return std::optional(placed);
}

}  // namespace berth
