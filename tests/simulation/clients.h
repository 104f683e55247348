// Clients that submit jobs, wait for them and cancel some, over a network that loses calls and
// answers. They retry a call, with its request id, until it is answered.
#ifndef BERTH_TESTS_SIMULATION_CLIENTS_H_
#define BERTH_TESTS_SIMULATION_CLIENTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/v1/job.pb.h"
#include "berth/v1/node.pb.h"
#include "clients/cpp/retry.h"
#include "server/commands/job_change.h"
#include "tests/simulation/network.h"
#include "tests/simulation/safety.h"
#include "tests/simulation/server.h"

namespace berth::simulation {

// Limits for the requests of jobs, so that each job fits at some time.
struct Workload {
  std::vector<std::string> queues;
  int64_t cpu_millis = 0;           // of the smallest node
  int gpus = 0;                     // likewise
  int64_t shared_memory_bytes = 0;  // of each GPU, if tasks may have parts of it
  int nodes = 0;
  bool borrows = false;    // queues have deserved shares, and all jobs beyond them are preemptible
  int rack_nodes = 0;      // of the smaller rack; 0: no racks
  absl::Duration between;  // mean time between jobs
  int64_t max_jobs = 0;
  // Jobs that have not ended; at this number clients wait. A backlog that grows all day makes each
  // hour slower than the one before, and finds nothing more.
  int64_t max_open = 0;
};

class Clients {
 public:
  Clients(Workload workload, Scheduler* scheduler, Trace* trace, Network* network, Server* server,
          Safety* safety, uint64_t seed, std::function<void(const std::string&)> fail);

  void Begin();
  // Submits no new jobs; calls in flight are completed.
  void Finish() { finishing_ = true; }
  // Calls without an answer yet.
  size_t waiting() const { return waiting_; }
  int64_t submitted() const { return submitted_; }
  // An operator's change of a node, which also ends a drain.
  void Steer(const std::string& node, bool cordoned);
  // Drains the node.
  void Drain(const v1::DrainNodeRequest& request);
  // The store was restored from a backup: jobs that had ended may be active again.
  void LookAgain();

 private:
  struct Call;
  using CallPtr = std::shared_ptr<Call>;

  // A change of a node by an operator, in a turn.
  void Operate(const std::string& node, std::function<absl::Status(Turn&, const Node&)> change);
  v1::Job MakeJob();
  void SetGroups(v1::JobSpec* spec, int nodes);
  void SetGroup(v1::TaskGroup* group, int most_tasks);
  void SetGang(v1::JobSpec* spec);
  void SetWatchdog(v1::JobSpec* spec);
  void SetDevices(v1::DeviceRequest* gpus);
  void SubmitNext();
  void OnSubmitted(const v1::Job& job, uint64_t uid, uint64_t incarnation);
  void CancelLater(const std::string& name);
  void SuspendLater(const std::string& name);
  void Resume(const std::string& name);
  void ChangeJob(const std::string& name, std::function<MaybeEvent(const Job&)> change,
                 std::function<void(const absl::Status&)> done);
  void ChangeState(const std::string& name,
                   std::function<MaybeEvent(const ClusterState&, const Job&)> change,
                   std::function<void(const absl::Status&)> done);
  void Poll(const std::string& name);
  // Sends the call, and retries it.
  void Send(const CallPtr& call);
  void Answered(const CallPtr& call, const absl::Status& status);
  // Runs `there` at the server unless the packet is lost.
  void Carry(std::function<void()> there);

  const Workload workload_;
  Scheduler* const scheduler_;
  Trace* const trace_;
  Network* const network_;
  Server* const server_;
  Safety* const safety_;
  const std::function<void(const std::string&)> fail_;
  Dice dice_, watch_dice_, image_dice_, pause_dice_;
  const ActorPtr actor_ = std::make_shared<Actor>();
  bool finishing_ = false;
  size_t waiting_ = 0;
  int64_t submitted_ = 0;
  int64_t open_ = 0;  // submitted, and not yet seen as ended
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_CLIENTS_H_
