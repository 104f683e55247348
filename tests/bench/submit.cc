// Submitting: many calls in flight, each chain of calls started again from its own completion.
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "tests/bench/cluster.h"

namespace berth::bench {
namespace {

// Sends requests from one shared list; `in_flight` chains, each sends the next request when its
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
    // Counted when the call is gone, and with it its hold on the channel: channels die on our
    // thread.
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

// One run on a fresh server without nodes: accept, validate, store. Returns jobs a second.
double MeasureRate(const Options& options, int64_t jobs, int64_t batch, int in_flight,
                   int connections) {
  BenchCluster cluster(options);
  cluster.StartServer();
  cluster.WaitServer();
  cluster.CreateQueue("bench");
  const auto requests = MakeRequests("bench", "bench", jobs, batch);
  return static_cast<double>(jobs) / SendAll(cluster, requests, in_flight, connections);
}

std::vector<double> MeasureRates(const Options& options, int64_t jobs, int64_t batch, int in_flight,
                                 int connections) {
  std::vector<double> rates;
  for (int run = 0; run < (options.quick ? 1 : 5); ++run) {
    rates.push_back(MeasureRate(options, jobs, batch, in_flight, connections));
  }
  return rates;
}

}  // namespace

double SendAll(const BenchCluster& cluster, const std::vector<v1::SubmitJobsRequest>& requests,
               int in_flight, int connections) {
  return Sender(cluster, requests, connections).Run(in_flight);
}

std::vector<Row> SubmitBatch(const Options& options) {
  const int64_t jobs = Scaled(options, 400'000, 1'000);
  Row row = MedianRow("rpc.submit_batch", "jobs/s", MeasureRates(options, jobs, 1'000, 4, 2));
  row.numbers["jobs"] = static_cast<double>(jobs);
  row.numbers["batch"] = 1'000;
  row.numbers["in_flight"] = 4;
  row.numbers["connections"] = 2;
  return {row};
}

std::vector<Row> SubmitUnary(const Options& options) {
  const int64_t jobs = Scaled(options, 100'000, 1'000);
  Row row = MedianRow("rpc.submit_unary", "jobs/s", MeasureRates(options, jobs, 1, 64, 4));
  row.numbers["jobs"] = static_cast<double>(jobs);
  row.numbers["in_flight"] = 64;
  row.numbers["connections"] = 4;
  return {row};
}

}  // namespace berth::bench
