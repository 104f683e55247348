// What the Watch stream tells about the tasks of one gang and about nodes, with the times at which
// the server decided or learned it, by its own clock, which is this machine's.
#ifndef BERTH_TESTS_BENCH_GANG_WATCH_H_
#define BERTH_TESTS_BENCH_GANG_WATCH_H_

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "tests/bench/cluster.h"

namespace berth::bench {

// The latest attempt of a task.
struct TaskSeen {
  uint32_t attempt = 0;
  std::string node;
  v1::TaskState state = v1::TASK_STATE_UNSPECIFIED;
  absl::Time bound, running;
};

// How one recovery went. Infinite past: it did not happen.
struct RecoverySeen {
  absl::Time suspect = absl::InfinitePast();  // the first node that was found silent
  absl::Time silent = absl::InfinitePast();   // the last
  absl::Time lost = absl::InfinitePast();     // the last that was lost
  absl::Time failed = absl::InfinitePast();   // the first task that failed by itself
  // The last task of those that had to stop; while a node is fenced, those on other nodes.
  absl::Time stopped = absl::InfinitePast();
  absl::Time bound, running;              // the last task
  std::map<std::string, TaskSeen> tasks;  // by name
};

class GangWatch {
 public:
  // Returns once the stream is established.
  explicit GangWatch(BenchCluster& cluster);
  ~GangWatch();

  // From now on: forgets what happened to nodes, and which attempts ran before.
  void Mark();
  // Waits until this many tasks run, each in an attempt that began after the mark.
  RecoverySeen WaitRestarted(size_t tasks);

 private:
  void Read();
  void Take(const v1::ChangeEvent& event);
  bool AllRestarted(size_t tasks) const;

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderInterface<v1::WatchResponse>> reader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, uint32_t> before_;  // attempts at the mark
  RecoverySeen seen_;
  std::thread thread_;
};

}  // namespace berth::bench

#endif  // BERTH_TESTS_BENCH_GANG_WATCH_H_
