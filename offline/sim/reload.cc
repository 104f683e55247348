#include "offline/sim/reload.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/model/state_editor.h"
#include "support/random.h"

namespace berth {
namespace {

// Shuffles the ids; in order if `numbers` is null.
template <class Id, class Value>
std::vector<Id> Shuffled(const IdMap<Id, Value>& map, Random* numbers) {
  std::vector<Id> ids;
  map.ForEach([&](Id id, const Value&) { ids.push_back(id); });
  for (size_t i = ids.size(); i > 1 && numbers != nullptr; --i) {
    std::swap(ids[i - 1], ids[numbers->Below(i)]);
  }
  return ids;
}

class Loading {
 public:
  // `numbers` may be null: in order.
  Loading(const ClusterState& from, Random* numbers, ClusterState* to)
      : from_(from), numbers_(numbers), editor_(*to) {}

  absl::Status Run() {
    Queues();
    editor_.LoadUsageCharged(from_.usage_charged());
    status_.Update(editor_.LoadRequestMix(from_.request_mix()));
    status_.Update(editor_.LoadAccess(from_.access().AsChange()));
    status_.Update(editor_.LoadPriorityClasses(from_.priority_classes().AsChange()));
    from_.run_history().ForEach(
        [&](RunId id, const FinishedRun& run) { status_.Update(editor_.LoadRun(id, run)); });
    for (NodeId id : Shuffled(from_.nodes(), numbers_)) {
      const Node& node = from_.nodes().At(id);
      status_.Update(editor_.LoadNode(id, node.spec, node.status, node.revision));
      status_.Update(editor_.LoadNodeImages(id, node.images));
    }
    for (HyperNodeId id : Shuffled(from_.hyper_nodes(), numbers_)) {
      const HyperNode& domain = from_.hyper_nodes().At(id);
      status_.Update(editor_.LoadHyperNode(id, domain.spec, domain.revision));
    }
    for (NodeId id : Shuffled(from_.nodes(), numbers_)) {
      status_.Update(editor_.LoadNodeDomains(id, from_.nodes().At(id).domains));
    }
    const std::vector<JobId> jobs = Shuffled(from_.jobs(), numbers_);
    for (JobId id : jobs) {
      const Job& job = from_.jobs().At(id);
      status_.Update(editor_.LoadJob(id, SpecOf(from_, job), job.submit, job.revision,
                                     job.prediction, job.line));
    }
    for (JobId id : Shuffled(from_.jobs(), numbers_)) Tasks(from_.jobs().At(id));
    for (const auto& [id, reservation] : from_.reservations()) {
      status_.Update(editor_.LoadReservation(id, reservation));
    }
    status_.Update(editor_.LoadNextIds(from_.next_job_id(), from_.next_node_id(),
                                       from_.next_queue_id(), from_.next_hyper_node_id()));
    editor_.FinishLoad();
    return status_;
  }

 private:
  // A child that comes before its parent waits for the next round.
  void Queues() {
    std::vector<QueueId> left = Shuffled(from_.queues(), numbers_);
    std::vector<QueueId> done;
    while (!left.empty() && status_.ok()) {
      std::vector<QueueId> later;
      for (QueueId id : left) {
        const Queue& queue = from_.queues().At(id);
        const bool ready = id == kRootQueue ||
                           std::find(done.begin(), done.end(), queue.spec.parent) != done.end();
        if (!ready) {
          later.push_back(id);
          continue;
        }
        status_.Update(editor_.LoadQueue(id, queue.spec, queue.open, queue.revision));
        status_.Update(editor_.LoadQueueUsage(id, queue.usage));
        status_.Update(editor_.LoadQueueLine(id, queue.line, queue.longest_line));
        done.push_back(id);
      }
      left = std::move(later);
    }
  }

  void Tasks(const Job& job) {
    if (job.walltime_updated) status_.Update(editor_.LoadWalltime(job.id, job.walltime));
    status_.Update(
        editor_.LoadJobStatus(job.id, job.status, job.priority, job.labels, job.revision));
    for (uint32_t i = 0; i < job.tasks.size(); ++i) {
      const TaskKey key{job.id, i};
      status_.Update(editor_.LoadTask(key, job.tasks[i], from_.TaskMessage(key)));
    }
  }

  const ClusterState& from_;
  Random* numbers_;
  StateEditor editor_;
  absl::Status status_;
};

}  // namespace

absl::Status LoadShuffled(const ClusterState& state, uint64_t seed, ClusterState* loaded) {
  Random numbers(seed);
  return Loading(state, &numbers, loaded).Run();
}

absl::Status LoadInOrder(const ClusterState& state, ClusterState* loaded) {
  return Loading(state, nullptr, loaded).Run();
}

}  // namespace berth
