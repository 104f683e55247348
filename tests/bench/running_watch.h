// Counts and times tasks that start, through the public Watch stream, as an orchestrator would.
#ifndef BERTH_TESTS_BENCH_RUNNING_WATCH_H_
#define BERTH_TESTS_BENCH_RUNNING_WATCH_H_

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "tests/bench/cluster.h"

namespace berth::bench {

class RunningWatch {
 public:
  // Returns once the stream is established: later submits are seen.
  explicit RunningWatch(BenchCluster& cluster);
  ~RunningWatch();

  // Waits until `count` tasks in total have been seen running, and returns the time at which the
  // last one was seen. nullopt after `timeout`.
  std::optional<Clock::time_point> WaitRunning(int64_t count, std::chrono::seconds timeout);
  // The same for tasks bound to a node.
  std::optional<Clock::time_point> WaitBound(int64_t count, std::chrono::seconds timeout);
  // The same for ended tasks.
  bool WaitEnded(int64_t count, std::chrono::seconds timeout);

 private:
  void Read();
  std::optional<Clock::time_point> Wait(v1::TaskState state, int64_t count,
                                        std::chrono::seconds timeout);

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderInterface<v1::WatchResponse>> reader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<v1::TaskState, int64_t> seen_;
  std::thread thread_;
};

}  // namespace berth::bench

#endif  // BERTH_TESTS_BENCH_RUNNING_WATCH_H_
