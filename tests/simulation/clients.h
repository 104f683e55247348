// Those who submit jobs, wait for them and cancel some, over a network that loses calls and
// answers; they repeat a call, with its request id, until they have an answer.
#ifndef BERTH_TESTS_SIMULATION_CLIENTS_H_
#define BERTH_TESTS_SIMULATION_CLIENTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/v1/job.pb.h"
#include "clients/cpp/retry.h"
#include "server/job_change.h"
#include "tests/simulation/network.h"
#include "tests/simulation/safety.h"
#include "tests/simulation/server.h"

namespace berth::simulation {

// What jobs may ask for so that each of them fits some time.
struct Workload {
  std::vector<std::string> queues;
  int64_t cpu_millis = 0;           // of the smallest node
  int gpus = 0;                     // likewise
  int64_t shared_memory_bytes = 0;  // of each GPU, if tasks may have parts of them
  int nodes = 0;
  bool borrows = false;    // queues deserve a part, and no job that may not be taken back gets more
  int rack_nodes = 0;      // of the smaller rack; 0: there are none
  absl::Duration between;  // jobs, on average
  int64_t max_jobs = 0;
  // Not ended: with as many, clients wait. A backlog that grows all day long makes each of its
  // hours slower than the one before, and finds nothing more.
  int64_t max_open = 0;
};

class Clients {
 public:
  Clients(Workload workload, Scheduler* scheduler, Trace* trace, Network* network, Server* server,
          Safety* safety, uint64_t seed, std::function<void(const std::string&)> fail);

  void Begin();
  // No new jobs any more; what is under way is finished.
  void Finish() { finishing_ = true; }
  // Calls that have no answer yet.
  size_t waiting() const { return waiting_; }
  int64_t submitted() const { return submitted_; }
  // An operator's word on a node, by which it is not drained any more.
  void Steer(const std::string& node, bool cordoned);
  // The store went back to a backup: jobs that had ended may be there again.
  void LookAgain();

 private:
  struct Call;
  using CallPtr = std::shared_ptr<Call>;

  v1::Job MakeJob();
  void SetGroup(v1::TaskGroup* group, int most_tasks);
  void SetDevices(v1::DeviceRequest* gpus);
  void SubmitNext();
  void OnSubmitted(const v1::Job& job, uint64_t uid, uint64_t incarnation);
  void CancelLater(const std::string& name);
  void SuspendLater(const std::string& name);
  void Resume(const std::string& name);
  void ChangeJob(const std::string& name, std::function<MaybeEvent(const Job&)> change,
                 std::function<void(const absl::Status&)> done);
  void Poll(const std::string& name);
  // Sends and repeats it.
  void Send(const CallPtr& call);
  void Answered(const CallPtr& call, const absl::Status& status);
  // Runs `there` at the server if the packet gets there.
  void Carry(std::function<void()> there);

  const Workload workload_;
  Scheduler* const scheduler_;
  Trace* const trace_;
  Network* const network_;
  Server* const server_;
  Safety* const safety_;
  const std::function<void(const std::string&)> fail_;
  Dice dice_;
  const ActorPtr actor_ = std::make_shared<Actor>();
  bool finishing_ = false;
  size_t waiting_ = 0;
  int64_t submitted_ = 0;
  int64_t open_ = 0;  // asked for, and not seen ended
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_CLIENTS_H_
