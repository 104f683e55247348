#include "offline/replay/network_progress.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace berth::replay {
namespace {

// The error from rounding to fractions of nanoseconds.
constexpr Duration kNothingLeft = absl::Microseconds(1);

bool AllRun(const Job& job) {
  return TallyOf(job).In(TaskState::kRunning) == static_cast<int32_t>(job.tasks.size());
}

// Times that are not stretched stay exact: a job may end exactly at its walltime.
Duration TimeFor(Duration work, double rate) {
  return rate == 1 ? work : work / rate + absl::Nanoseconds(1);
}
Duration WorkIn(Duration time, double rate) { return rate == 1 ? time : time * rate; }

}  // namespace

void NetworkProgress::Submitted(JobId job, size_t index) { work_[job].index = index; }

void NetworkProgress::Decided(const SimCluster& cluster, const EventBody& decision) {
  if (const auto* bound = std::get_if<TasksBound>(&decision)) changed_.insert(bound->job);
  if (const auto* started = std::get_if<TasksStarted>(&decision)) changed_.insert(started->job);
  if (const auto* released = std::get_if<TasksReleased>(&decision)) changed_.insert(released->job);
  const auto* status = std::get_if<JobStatusChanged>(&decision);
  if (status == nullptr) return;
  changed_.insert(status->job);
  if (Ended(status->status.state)) End(status->job, cluster.now());
}

const Training* NetworkProgress::TrainingOf(const Work& work) const {
  return work.ring.workers < 2 ? nullptr : network_.TrainingOf(work.index);
}

void NetworkProgress::Begin(const ClusterState& state, JobId id, Time now, Work* work) {
  const Job& job = state.jobs().At(id);
  if (work->starts != job.status.starts) {
    work->starts = job.status.starts;
    work->left = workload_.jobs[work->index].run;
    work->began = now;
  }
  work->running = true;
  work->since = now;
  work->rate = 0;
  work->ring = map_.RingOf(state, job, &links_);
  paced_.insert(id);
  if (TrainingOf(*work) != nullptr) paced_.merge(links_.Join(id, work->ring.crossings));
}

void NetworkProgress::Pause(JobId id, Time now, Work* work) {
  UpdateRemaining(now, work);
  work->running = false;
  work->rate = 0;
  paced_.insert(id);
  if (TrainingOf(*work) != nullptr) paced_.merge(links_.Leave(id));
}

void NetworkProgress::UpdateRemaining(Time now, Work* work) {
  const Duration done = std::min(WorkIn(now - work->since, work->rate), work->left);
  work->left -= done;
  work->since = now;
  const Training* training = TrainingOf(*work);
  if (training == nullptr) return;
  const int64_t workers = work->ring.workers;
  const double iterations =
      absl::ToDoubleSeconds(done) / IterationSeconds(*training, workers, training->reference_gbps);
  for (const Crossing& crossing : work->ring.crossings) {
    run_.traffic[map_.TierOf(crossing.link)] +=
        iterations * crossing.times * RingBytes(training->bytes, workers);
  }
}

void NetworkProgress::End(JobId id, Time now) {
  Work& work = work_.at(id);
  if (work.running) Pause(id, now, &work);
  if (work.starts > 0 && work.left > kNothingLeft) {
    run_.stopped[work.index] = work.left;
  } else if (work.starts > 0 && TrainingOf(work) != nullptr) {
    const Duration run = workload_.jobs[work.index].run;
    run_.slowdowns.push_back(absl::FDivDuration(now - work.began, run));
  }
  work_.erase(id);
}

void NetworkProgress::Look(const SimCluster& cluster, JobId id) {
  const auto found = work_.find(id);
  if (found == work_.end()) return;  // ended
  if (found->second.running) Pause(id, cluster.now(), &found->second);
  if (AllRun(cluster.state().jobs().At(id))) {
    Begin(cluster.state(), id, cluster.now(), &found->second);
  }
}

void NetworkProgress::Settled(SimCluster* cluster) {
  for (JobId id : std::exchange(changed_, {})) Look(*cluster, id);
  for (JobId id : std::exchange(paced_, {})) {
    const auto found = work_.find(id);
    if (found == work_.end()) continue;
    Work& work = found->second;
    if (!work.running) {
      cluster->RunsUntil(id, absl::InfiniteFuture());
      continue;
    }
    UpdateRemaining(cluster->now(), &work);
    const Training* training = TrainingOf(work);
    double rate = 1;
    if (training != nullptr) {
      rate = RateOf(*training, work.ring.workers, std::min(links_.Gbps(id), work.ring.device_gbps));
    }
    if (rate == work.rate) continue;
    work.rate = rate;
    cluster->RunsUntil(id, cluster->now() + TimeFor(work.left, rate));
  }
}

}  // namespace berth::replay
