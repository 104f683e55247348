#include "offline/replay/training_progress.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace berth::replay {
namespace {

bool AllTrain(const Job& job) {
  return TallyOf(job).In(TaskState::kRunning) == static_cast<int32_t>(job.tasks.size());
}

uint64_t AttemptsOf(const Job& job) {
  uint64_t sum = 0;
  for (const Task& task : job.tasks) sum += task.attempt;
  return sum;
}

}  // namespace

Duration TimeSpent::Sum() const {
  return useful + lost + checkpoints + restarts + undetected + waiting;
}

void TrainingProgress::Submitted(JobId job, size_t index) {
  work_[job] = {.index = index, .left = workload_.jobs[index].run};
}

void TrainingProgress::Decided(const SimCluster& cluster, const EventBody& decision) {
  if (const auto* bound = std::get_if<TasksBound>(&decision)) changed_.insert(bound->job);
  if (const auto* started = std::get_if<TasksStarted>(&decision)) changed_.insert(started->job);
  if (const auto* released = std::get_if<TasksReleased>(&decision)) changed_.insert(released->job);
  const auto* status = std::get_if<JobStatusChanged>(&decision);
  if (status == nullptr) return;
  changed_.insert(status->job);
  if (Ended(status->status.state)) End(status->job, cluster.now());
}

bool TrainingProgress::OnBadNode(const Job& job) const {
  return !bad_.empty() && std::any_of(job.tasks.begin(), job.tasks.end(),
                                      [&](const Task& task) { return bad_.count(task.node) > 0; });
}

TrainingTime TrainingProgress::TimeOf(const Work& work, Time now) const {
  const Time until = std::min(now, work.stands);
  return TrainingTimeOf(CostsOf(work), work.again, until - work.since);
}

void TrainingProgress::Begin(SimCluster* cluster, JobId id, Work* work) {
  const Time now = cluster->now();
  if (work->started) {
    work->spent.waiting += now - work->since;
    work->again = true;
  }
  work->started = work->running = true;
  work->since = now;
  const Job& job = cluster->state().jobs().At(id);
  work->attempts = AttemptsOf(job);
  work->stands = OnBadNode(job) ? now : absl::InfiniteFuture();
  const bool stands = work->stands != absl::InfiniteFuture();
  cluster->RunsUntil(id, stands ? absl::InfiniteFuture()
                                : now + TimeToTrain(CostsOf(*work), work->again, work->left));
}

// What was not saved is lost.
void TrainingProgress::Pause(Time now, Work* work) {
  const TrainingTime time = TimeOf(*work, now);
  work->spent.useful += time.saved;
  work->spent.lost += time.unsaved;
  work->spent.checkpoints += time.checkpoints;
  work->spent.restarts += time.restart;
  if (work->stands < now) work->spent.undetected += now - work->stands;
  work->left -= time.saved;
  work->running = false;
  work->since = now;
}

void TrainingProgress::End(JobId id, Time now) {
  const auto found = work_.find(id);
  Work& work = found->second;
  const Duration needs = TimeToTrain(CostsOf(work), work.again, work.left);
  const bool done =
      work.running && work.stands == absl::InfiniteFuture() && now - work.since >= needs;
  if (work.running) Pause(now, &work);
  if (done) {  // the work at the end needs no checkpoint
    work.spent.useful += work.left;
    work.spent.lost -= work.left;
  } else if (work.started) {
    run_.stopped.insert(work.index);
    work.spent.waiting += now - work.since;
  }
  if (work.started) run_.spent[work.index] = work.spent;
  work_.erase(found);
}

void TrainingProgress::Look(SimCluster* cluster, JobId id) {
  const auto found = work_.find(id);
  if (found == work_.end()) return;  // ended
  Work& work = found->second;
  const Job& job = cluster->state().jobs().At(id);
  const bool trains = AllTrain(job);
  if (work.running && trains && AttemptsOf(job) == work.attempts) return;  // nothing has stopped
  if (work.running) {
    Pause(cluster->now(), &work);
    cluster->RunsUntil(id, absl::InfiniteFuture());
  }
  if (trains) Begin(cluster, id, &work);
}

void TrainingProgress::Settled(SimCluster* cluster) {
  for (JobId id : std::exchange(changed_, {})) Look(cluster, id);
}

void TrainingProgress::StandsStill(SimCluster* cluster, JobId id) {
  const auto found = work_.find(id);
  if (found == work_.end() || !found->second.running) return;
  found->second.stands = std::min(found->second.stands, cluster->now());
  cluster->RunsUntil(id, absl::InfiniteFuture());
}

void TrainingProgress::NodeStands(SimCluster* cluster, NodeId node, bool stands) {
  if (!stands) {
    bad_.erase(node);
    return;
  }
  bad_.insert(node);
  const std::vector<TaskKey> tasks = cluster->state().nodes().At(node).tasks;
  for (const TaskKey& task : tasks) StandsStill(cluster, task.job);
}

Duration TrainingProgress::Unsaved(JobId job, Time now) const {
  const auto found = work_.find(job);
  if (found == work_.end() || !found->second.running) return absl::InfiniteDuration();
  const Work& work = found->second;
  return now - work.since - TimeOf(work, now).saved;
}

}  // namespace berth::replay
