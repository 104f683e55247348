#include "offline/replay/training_result.h"

namespace berth::replay {
namespace {

// Its GPUs, or its tasks if it has none.
double WeightOf(const TraceJob& job) {
  const double gpus = GpusOf(job);
  return gpus > 0 ? gpus : TasksOf(job);
}

}  // namespace

sim::v1::TrainingFigures FiguresOf(const Workload& workload, const ReplayRun& run,
                                   const TrainingRun& training) {
  sim::v1::TrainingFigures figures;
  double all = 0;
  for (const auto& [index, spent] : training.spent) {
    const double weight = WeightOf(workload.jobs[index]);
    const auto part = [&](Duration time) { return weight * absl::ToDoubleSeconds(time); };
    all += part(spent.Sum());
    figures.set_ettr(figures.ettr() + part(spent.useful));
    figures.set_checkpoints(figures.checkpoints() + part(spent.checkpoints));
    figures.set_lost(figures.lost() + part(spent.lost));
    figures.set_undetected(figures.undetected() + part(spent.undetected));
    figures.set_waiting(figures.waiting() + part(spent.waiting));
    figures.set_restarts(figures.restarts() + part(spent.restarts));
  }
  const double whole = all > 0 ? all : 1;
  figures.set_ettr(figures.ettr() / whole);
  figures.set_checkpoints(figures.checkpoints() / whole);
  figures.set_lost(figures.lost() / whole);
  figures.set_undetected(figures.undetected() / whole);
  figures.set_waiting(figures.waiting() / whole);
  figures.set_restarts(figures.restarts() / whole);
  figures.set_jobs(static_cast<int64_t>(training.spent.size()));
  figures.set_stopped(static_cast<int64_t>(training.stopped.size()));
  figures.set_faults(run.strikes);
  figures.mutable_interruptions()->insert(run.interruptions.begin(), run.interruptions.end());
  return figures;
}

}  // namespace berth::replay
