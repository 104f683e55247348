// Submits jobs: many calls in flight, each chain of calls continued from its last completion.
#include <sys/resource.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "tests/bench/cluster.h"

namespace berth::bench {
namespace {

// Sends requests from one shared list; `in_flight` chains, each sends its next request when the
// last one was answered.
// last was answered.
class Sender {
 public:
  Sender(const BenchCluster& cluster, const std::vector<v1::SubmitJobsRequest>& requests,
         int connections)
      : requests_(requests) {
    for (int i = 0; i < connections; ++i) {
      stubs_.push_back(v1::JobService::NewStub(cluster.NewChannel()));
    }
  }

  double Run(int in_flight) {
    for (auto& stub : stubs_) WarmUp(*stub);
    const auto begin = Clock::now();
    for (int i = 0; i < in_flight; ++i) SendNext(i);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return answered_ == requests_.size(); });
    return SecondsSince(begin);
  }

 private:
  struct Call {
    grpc::ClientContext context;
    v1::SubmitJobsResponse response;
  };

  static void WarmUp(v1::JobService::Stub& stub) {
    grpc::ClientContext context;
    v1::ListJobsResponse response;
    Check(stub.ListJobs(&context, {}, &response), "ListJobs");
  }

  void SendNext(int chain) {
    const size_t index = next_.fetch_add(1);
    if (index >= requests_.size()) return;
    // Counted when the call is destroyed, and with it its reference to the channel: channels must
    // die on this thread.
    const std::shared_ptr<Call> call(new Call, [this](Call* gone) {
      delete gone;
      std::unique_lock lock(mutex_);
      if (++answered_ == requests_.size()) done_.notify_one();
    });
    v1::JobService::Stub& stub = *stubs_[static_cast<size_t>(chain) % stubs_.size()];
    stub.async()->SubmitJobs(&call->context, &requests_[index], &call->response,
                             [this, call, chain](const grpc::Status& status) {
                               Check(status, "SubmitJobs");
                               SendNext(chain);
                             });
  }

  const std::vector<v1::SubmitJobsRequest>& requests_;
  std::vector<std::unique_ptr<v1::JobService::Stub>> stubs_;
  std::atomic<size_t> next_{0};
  std::mutex mutex_;
  std::condition_variable done_;
  size_t answered_ = 0;
};

// The result of one run; CPU time is user and system.
struct Rate {
  double jobs_per_s = 0;
  double server_cpu_us = 0;  // a job
  double client_cpu_us = 0;  // a job
};

double OwnCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The parameters of a row.
struct Load {
  int64_t jobs = 0;
  int64_t batch = 1;
  int in_flight = 1;
  int connections = 1;
};

// One run on a new server without nodes: accept, validate, store.
Rate MeasureRate(const Options& options, const Load& load) {
  BenchCluster cluster(options);
  cluster.StartServer();
  cluster.WaitServer();
  cluster.CreateQueue("bench");
  const auto requests = MakeRequests("bench", "bench", load.jobs, load.batch);
  const double server = cluster.server().CpuSeconds();
  const double client = OwnCpuSeconds();
  const double seconds = SendAll(cluster, requests, load.in_flight, load.connections);
  const auto jobs = static_cast<double>(load.jobs);
  return {.jobs_per_s = jobs / seconds,
          .server_cpu_us = (cluster.server().CpuSeconds() - server) * 1e6 / jobs,
          .client_cpu_us = (OwnCpuSeconds() - client) * 1e6 / jobs};
}

// The median of the runs, with the CPU time: other programs on the machine affect the first, but
// hardly the second.
Row MeasureRow(const std::string& name, const Options& options, const Load& load) {
  std::vector<double> rates, server, client;
  for (int run = 0; run < (options.quick ? 1 : 5); ++run) {
    const Rate rate = MeasureRate(options, load);
    rates.push_back(rate.jobs_per_s);
    server.push_back(rate.server_cpu_us);
    client.push_back(rate.client_cpu_us);
  }
  Row row = MedianRow(name, "jobs/s", rates);
  row.numbers["server_cpu_us"] = MedianRow("", "", server).value;
  row.numbers["client_cpu_us"] = MedianRow("", "", client).value;
  row.numbers["jobs"] = static_cast<double>(load.jobs);
  row.numbers["in_flight"] = load.in_flight;
  row.numbers["connections"] = load.connections;
  return row;
}

}  // namespace

double SendAll(const BenchCluster& cluster, const std::vector<v1::SubmitJobsRequest>& requests,
               int in_flight, int connections) {
  return Sender(cluster, requests, connections).Run(in_flight);
}

std::vector<Row> SubmitBatch(const Options& options) {
  Row row = MeasureRow(
      "rpc.submit_batch", options,
      {.jobs = Scaled(options, 400'000, 1'000), .batch = 1'000, .in_flight = 4, .connections = 2});
  row.numbers["batch"] = 1'000;
  return {row};
}

std::vector<Row> SubmitUnary(const Options& options) {
  return {MeasureRow(
      "rpc.submit_unary", options,
      {.jobs = Scaled(options, 100'000, 1'000), .batch = 1, .in_flight = 64, .connections = 4})};
}

}  // namespace berth::bench
