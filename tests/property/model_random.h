// Random events, most of them valid: enough of each kind to cover every corner of the model.
#ifndef BERTH_TESTS_PROPERTY_MODEL_RANDOM_H_
#define BERTH_TESTS_PROPERTY_MODEL_RANDOM_H_

#include <string>
#include <vector>

#include "support/random.h"
#include "tests/unit/core/model_world.h"

namespace berth {

class RandomEvents {
 public:
  RandomEvents(World& world, uint64_t seed) : world_(world), random_(seed) {}
  EventBody Next();
  Random& random() { return random_; }
  // A random id, existing or not.
  JobId AnyJob();
  NodeId AnyNode();
  QueueId AnyQueue();

 private:
  EventBody QueueEvent();
  EventBody NodeEvent();
  EventBody TopologyEvent();
  EventBody JobEvent();
  EventBody StatusEvent();
  EventBody BindEvent();
  EventBody ReportEvent();
  EventBody TasksEvent();
  EventBody ProgressEvent();
  EventBody PauseEvent(TaskKey task, uint32_t attempt);
  EventBody PlanEvent();
  EventBody ReleaseEvent(JobId id, std::vector<uint32_t> tasks);
  Placement PlaceFor(const Job& job, uint32_t task);
  void SetShares(QueueSpec& spec);
  NodeSpec RandomNode(const std::string& name);
  EventBody AccessEvent();
  NodeSteered RandomSteering(const Node& node);
  HyperNodeSpec RandomHyperNode(std::string name, std::string kind);
  JobSpec RandomJob(const std::string& name);
  bool Chance(uint64_t one_in) { return random_.Below(one_in) == 0; }
  int Up(int bound) { return static_cast<int>(random_.Below(static_cast<uint64_t>(bound))); }

  World& world_;
  Random random_;
};

}  // namespace berth

#endif  // BERTH_TESTS_PROPERTY_MODEL_RANDOM_H_
