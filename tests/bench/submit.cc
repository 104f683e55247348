// Submits jobs: many calls in flight, each chain of calls continued from its last completion.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/bench/cluster.h"

namespace berth::bench {
namespace {

// Sends requests from one shared list; `in_flight` chains, each sends its next request when the
// last one was answered.
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
  Security security = Security::kNone;
};

// One run on a new server without nodes: accept, validate, store.
Rate MeasureRate(const Options& options, const Load& load) {
  BenchCluster cluster(options, "", load.security);
  cluster.StartServer();
  cluster.WaitServer();
  cluster.CreateQueue("bench");
  if (load.security == Security::kRules) cluster.WriteRules({"bench"});
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

// With TLS, and with TLS and access rules: in turns, as the machine's speed changes.
std::vector<Row> SubmitSecure(const Options& options) {
  Load load{.jobs = Scaled(options, 100'000, 1'000), .batch = 1, .in_flight = 64, .connections = 4};
  std::vector<double> tls, rules, ratios;
  for (int run = 0; run < (options.quick ? 1 : 7); ++run) {
    load.security = Security::kTls;
    tls.push_back(MeasureRate(options, load).jobs_per_s);
    load.security = Security::kRules;
    rules.push_back(MeasureRate(options, load).jobs_per_s);
    ratios.push_back(rules.back() / tls.back());
  }
  Row row = MedianRow("rpc.submit_secure", "with rules / TLS alone", ratios);
  row.numbers["tls_jobs_per_s"] = MedianRow("", "", tls).value;
  row.numbers["rules_jobs_per_s"] = MedianRow("", "", rules).value;
  return {row};
}

namespace {

// A user who calls again as soon as a call is answered, whatever the answer: far more than the
// server can take.
class Flood {
 public:
  Flood(const BenchCluster& cluster, int connections, int in_flight)
      : requests_(MakeRequests("flood", "bench", 1, 1)) {
    requests_[0].mutable_jobs(0)->clear_name();
    requests_[0].clear_request_id();
    for (int i = 0; i < connections; ++i) {
      stubs_.push_back(v1::JobService::NewStub(cluster.NewChannel("flood")));
    }
    for (int i = 0; i < in_flight; ++i) Send(i);
  }
  ~Flood() {
    stop_ = true;
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return open_ == 0; });
  }
  int64_t accepted() const { return accepted_; }
  int64_t refused() const { return refused_; }

 private:
  struct Call {
    grpc::ClientContext context;
    v1::SubmitJobsResponse response;
  };
  void Send(int chain) {
    {
      std::unique_lock lock(mutex_);
      ++open_;
    }
    const std::shared_ptr<Call> call(new Call, [this](Call* gone) {
      delete gone;
      std::unique_lock lock(mutex_);
      if (--open_ == 0) done_.notify_one();
    });
    v1::JobService::Stub& stub = *stubs_[static_cast<size_t>(chain) % stubs_.size()];
    stub.async()->SubmitJobs(&call->context, &requests_[0], &call->response,
                             [this, call, chain](const grpc::Status& status) {
                               ++(status.ok() ? accepted_ : refused_);
                               if (!stop_) Send(chain);
                             });
  }

  std::vector<v1::SubmitJobsRequest> requests_;
  std::vector<std::unique_ptr<v1::JobService::Stub>> stubs_;
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> accepted_{0}, refused_{0};
  std::mutex mutex_;
  std::condition_variable done_;
  int open_ = 0;
};

// Milliseconds of each of `calls` submits, one after the other, a few milliseconds apart.
std::vector<double> Latencies(BenchCluster& cluster, const std::string& prefix, int64_t calls) {
  const auto requests = MakeRequests(prefix, "bench", calls, 1);
  const auto stub = v1::JobService::NewStub(cluster.NewChannel("victim"));
  std::vector<double> ms;
  for (const v1::SubmitJobsRequest& request : requests) {
    grpc::ClientContext context;
    v1::SubmitJobsResponse response;
    const auto begin = Clock::now();
    Check(stub->SubmitJobs(&context, request, &response), "SubmitJobs");
    ms.push_back(1e3 * SecondsSince(begin));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  std::sort(ms.begin(), ms.end());
  return ms;
}

double At(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

std::vector<Row> SubmitBesideFlood(const Options& options) {
  BenchCluster cluster(options, "limits: {activeJobs: 100000000}", Security::kRules);
  cluster.StartServer();
  cluster.WaitServer();
  cluster.CreateQueue("bench");
  cluster.WriteRules({"victim", "flood"});
  const int64_t calls = Scaled(options, 1'000, 100);
  (void)Latencies(cluster, "warm", calls / 10);
  const std::vector<double> alone = Latencies(cluster, "alone", calls);
  std::vector<double> beside;
  int64_t accepted = 0, refused = 0;
  const auto begin = Clock::now();
  {
    // 640 calls under way, where 64 use the server to capacity.
    Flood flood(cluster, 16, 640);
    beside = Latencies(cluster, "beside", calls);
    accepted = flood.accepted();
    refused = flood.refused();
  }
  const double seconds = SecondsSince(begin);
  Row row{.name = "rpc.flood",
          .value = At(beside, 0.99) / At(alone, 0.99),
          .unit = "p99 beside a flood / alone"};
  row.numbers["alone_p50_ms"] = At(alone, 0.5);
  row.numbers["alone_p99_ms"] = At(alone, 0.99);
  row.numbers["beside_p50_ms"] = At(beside, 0.5);
  row.numbers["beside_p99_ms"] = At(beside, 0.99);
  row.numbers["flood_accepted_per_s"] = static_cast<double>(accepted) / seconds;
  row.numbers["flood_refused_per_s"] = static_cast<double>(refused) / seconds;
  return {row};
}

}  // namespace berth::bench
