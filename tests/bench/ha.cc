// High availability: three members of a real etcd and two servers, all on this machine.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/cluster.h"

namespace berth::bench {
namespace {

constexpr auto kTimeout = std::chrono::seconds(120);

class EtcdCluster {
 public:
  EtcdCluster() {
    std::vector<int> clients, peers;
    std::string initial;
    for (int i = 0; i < 3; ++i) {
      clients.push_back(FreePort());
      peers.push_back(FreePort());
      absl::StrAppend(&initial, i == 0 ? "" : ",", "e", i, "=http://127.0.0.1:", peers.back());
    }
    setenv("GOGC", "50", 1);
    for (size_t i = 0; i < 3; ++i) {
      const std::string client = absl::StrCat("http://127.0.0.1:", clients[i]);
      const std::string peer = absl::StrCat("http://127.0.0.1:", peers[i]);
      members_.push_back(
          std::make_unique<Process>(std::vector<std::string>{"/usr/bin/env",
                                                             "etcd",
                                                             "--name",
                                                             absl::StrCat("e", i),
                                                             "--data-dir",
                                                             absl::StrCat(home_.path(), "/e", i),
                                                             "--heartbeat-interval",
                                                             "50",
                                                             "--election-timeout",
                                                             "500",
                                                             "--pre-vote",
                                                             "--snapshot-count",
                                                             "500",
                                                             "--quota-backend-bytes",
                                                             "2147483648",
                                                             "--listen-client-urls",
                                                             client,
                                                             "--advertise-client-urls",
                                                             client,
                                                             "--listen-peer-urls",
                                                             peer,
                                                             "--initial-advertise-peer-urls",
                                                             peer,
                                                             "--initial-cluster",
                                                             initial,
                                                             "--log-level",
                                                             "error"},
                                    absl::StrCat(home_.path(), "/e", i, ".log")));
      absl::StrAppend(&endpoints_, i == 0 ? "" : ", ", "\"127.0.0.1:", clients[i], "\"");
      ports_.push_back(clients[i]);
    }
    const auto begin = Clock::now();
    for (const int port : ports_) {
      while (!PortAnswers(port)) {
        if (Clock::now() - begin > kTimeout) Fail("etcd does not answer: is it installed?");
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    }
    std::this_thread::sleep_for(std::chrono::seconds(2));  // it elects a leader
  }
  std::string ConfigOf(const std::string& server) const {
    return absl::StrCat("ha: {etcd: [", endpoints_, "], name: ", server, "}\n");
  }
  double CpuSeconds() const {
    double seconds = 0;
    for (const auto& member : members_) seconds += member->CpuSeconds();
    return seconds;
  }
  // Of the largest member's database on disk.
  double DatabaseMiB() const {
    double most = 0;
    for (int i = 0; i < 3; ++i) {
      std::error_code error;
      const auto bytes =
          std::filesystem::file_size(absl::StrCat(home_.path(), "/e", i, "/member/snap/db"), error);
      if (!error) most = std::max(most, static_cast<double>(bytes));
    }
    return most / (1024.0 * 1024.0);
  }
  double ResidentMiB() const {
    double most = 0;
    for (const auto& member : members_) {
      most = std::max(most, static_cast<double>(member->ResidentBytes()));
    }
    return most / (1024.0 * 1024.0);
  }

 private:
  TempDirectory home_;
  std::vector<std::unique_ptr<Process>> members_;
  std::vector<int> ports_;
  std::string endpoints_;
};

// A leader and a standby.
struct Pair {
  explicit Pair(const Options& options, const std::string& config = "")
      : leader(options, config + etcd.ConfigOf("a")),
        standby(options, config + etcd.ConfigOf("b")) {
    leader.RunServer("--ha-init");
    leader.StartServer();
    leader.WaitStandby();
    while (!Leads(leader)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    standby.StartServer();
    standby.WaitStandby();
  }
  static bool Leads(BenchCluster& server) {
    grpc::ClientContext context;
    v1::ClusterInfo info;
    return server.cluster().GetClusterInfo(&context, {}, &info).ok();
  }
  uint64_t RevisionOf(const std::string& name) {
    grpc::ClientContext context;
    v1::ListMembersResponse members;
    Check(leader.cluster().ListMembers(&context, {}, &members), "ListMembers");
    for (const v1::ClusterMember& member : members.members()) {
      if (member.name() == name) return member.applied_revision();
    }
    return 0;
  }

  EtcdCluster etcd;
  BenchCluster leader, standby;
};

double At(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1))];
}

// Milliseconds of single submits by several clients, each one call after the other.
std::vector<double> UnaryLatencies(BenchCluster& server, int clients, int64_t calls) {
  std::vector<double> all;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int client = 0; client < clients; ++client) {
    threads.emplace_back([&, client] {
      const auto stub = v1::JobService::NewStub(server.NewChannel());
      std::vector<double> ms;
      for (const v1::SubmitJobsRequest& request :
           MakeRequests(absl::StrCat("unary-", client), "bench", calls, 1)) {
        grpc::ClientContext context;
        v1::SubmitJobsResponse response;
        const auto begin = Clock::now();
        Check(stub->SubmitJobs(&context, request, &response), "SubmitJobs");
        ms.push_back(1e3 * SecondsSince(begin));
      }
      const std::lock_guard lock(mutex);
      all.insert(all.end(), ms.begin(), ms.end());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

std::vector<Row> HaSubmit(const Options& options) {
  const int64_t jobs = Scaled(options, 400'000, 4'000);
  std::vector<double> rates, p50, p99, etcd_cpu, memory;
  for (int run = 0; run < (options.quick ? 1 : 3); ++run) {
    Pair pair(options);
    pair.leader.CreateQueue("bench");
    const double cpu = pair.etcd.CpuSeconds();
    const auto requests = MakeRequests("bench", "bench", jobs, 1'000);
    rates.push_back(static_cast<double>(jobs) / SendAll(pair.leader, requests, 4, 2));
    etcd_cpu.push_back((pair.etcd.CpuSeconds() - cpu) * 1e6 / static_cast<double>(jobs));
    std::this_thread::sleep_for(std::chrono::seconds(2));
    const std::vector<double> ms = UnaryLatencies(pair.leader, 8, Scaled(options, 500, 50));
    p50.push_back(At(ms, 0.5));
    p99.push_back(At(ms, 0.99));
    memory.push_back(pair.etcd.ResidentMiB());
  }
  Row row = MedianRow("ha.submit", "jobs/s", rates);
  row.numbers["jobs"] = static_cast<double>(jobs);
  row.numbers["unary_p50_ms"] = MedianRow("", "", p50).value;
  row.numbers["unary_p99_ms"] = MedianRow("", "", p99).value;
  row.numbers["etcd_cpu_us"] = MedianRow("", "", etcd_cpu).value;  // of all members, a job
  row.numbers["etcd_mib"] = MedianRow("", "", memory).value;       // of the largest member
  return {row};
}

// etcd's database under a steady load of 10 MB/s that does not compress.
std::vector<Row> HaEtcd(const Options& options) {
  constexpr double kBytesPerSecond = 10e6;
  constexpr int64_t kBatch = 100, kEnvironment = 8'000;
  const auto seconds = static_cast<double>(Scaled(options, 300, 10));
  Pair pair(options, "limits: {message: 16Mi}\n");
  pair.leader.CreateQueue("bench");
  std::mt19937_64 random(1);
  const auto stub = v1::JobService::NewStub(pair.leader.NewChannel());
  std::vector<double> database;
  double sent = 0, largest = 0, resident = 0;
  const auto begin = Clock::now();
  for (int64_t call = 0; SecondsSince(begin) < seconds; ++call) {
    v1::SubmitJobsRequest request =
        MakeRequests(absl::StrCat("load-", call), "bench", kBatch, kBatch)[0];
    for (v1::Job& job : *request.mutable_jobs()) {
      v1::EnvVar& variable = *job.mutable_spec()->mutable_groups(0)->add_env();
      variable.set_name("X");
      std::string* value = variable.mutable_value();
      for (int64_t i = 0; i < kEnvironment; ++i) *value += static_cast<char>('!' + random() % 90);
    }
    sent += static_cast<double>(request.ByteSizeLong());
    grpc::ClientContext context;
    v1::SubmitJobsResponse response;
    Check(stub->SubmitJobs(&context, request, &response), "SubmitJobs");
    const double ahead = sent / kBytesPerSecond - SecondsSince(begin);
    if (ahead > 0) std::this_thread::sleep_for(std::chrono::duration<double>(ahead));
    if (call % 10 != 0) continue;
    database.push_back(pair.etcd.DatabaseMiB());
    largest = std::max(largest, database.back());
    resident = std::max(resident, pair.etcd.ResidentMiB());
  }
  const double taken = SecondsSince(begin);
  Row row = MedianRow("ha.etcd", "MiB of etcd's database", {largest});
  row.numbers["seconds"] = taken;
  row.numbers["mb_per_s"] = sent / 1e6 / taken;
  row.numbers["half_way_mib"] = database[database.size() / 2];
  row.numbers["at_the_end_mib"] = database.back();
  row.numbers["resident_mib"] = resident;
  return {row};
}

// From kill -9 of the leader to the first accepted submit at the other server.
std::vector<Row> HaTakeover(const Options& options) {
  const int64_t jobs = Scaled(options, 1'000'000, 4'000), nodes = Scaled(options, 10'000, 100);
  Pair pair(options, kPatient);
  RegisterNodes(pair.leader, nodes);
  pair.leader.CreateQueue("bench");
  FillQueue(pair.leader, jobs);
  const auto begin_wait = Clock::now();
  while (pair.RevisionOf("b") < pair.leader.Info().revision()) {
    if (Clock::now() - begin_wait > kTimeout) Fail("the standby does not catch up");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  const double caught_up_s = SecondsSince(begin_wait);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  std::vector<double> seconds;
  BenchCluster* leads = &pair.leader;
  BenchCluster* follows = &pair.standby;
  for (int run = 0; run < (options.quick ? 1 : 5); ++run) {
    leads->KillServer();
    const auto begin = Clock::now();
    const auto requests = MakeRequests(absl::StrCat("probe-", run), "bench", 1, 1);
    for (;;) {
      grpc::ClientContext context;
      v1::SubmitJobsResponse response;
      if (follows->jobs().SubmitJobs(&context, requests[0], &response).ok()) break;
      if (SecondsSince(begin) > 60) Fail("nobody takes over: " + follows->server().LogTail());
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    seconds.push_back(SecondsSince(begin));
    leads->StartServer();  // loads, and catches up
    leads->WaitStandby();
    std::swap(leads, follows);
    std::this_thread::sleep_for(std::chrono::seconds(3));
  }
  Row row = MedianRow("ha.takeover", "s", seconds);
  row.numbers["jobs"] = static_cast<double>(jobs);
  row.numbers["nodes"] = static_cast<double>(nodes);
  row.numbers["max_s"] = *std::max_element(seconds.begin(), seconds.end());
  row.numbers["caught_up_s"] = caught_up_s;  // after the last submit
  row.numbers["standby_mib"] =
      static_cast<double>(leads->server().ResidentBytes()) / (1024.0 * 1024.0);
  return {row};
}

}  // namespace berth::bench
