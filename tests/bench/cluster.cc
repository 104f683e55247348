#include "tests/bench/cluster.h"

#include <cstdlib>
#include <thread>

#include "absl/strings/str_cat.h"

namespace berth::bench {
namespace {

constexpr auto kStartTimeout = std::chrono::seconds(120);
constexpr auto kCallTimeout = std::chrono::seconds(60);

void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() + kCallTimeout);
}

}  // namespace

void Check(const grpc::Status& status, const std::string& what) {
  if (!status.ok())
    Fail(absl::StrCat(what, ": ", status.error_code(), " ", status.error_message()));
}

BenchCluster::BenchCluster(const Options& options, std::string server_config, Security security)
    : options_(options), security_(security), port_(FreePort()), http_port_(FreePort()) {
  if (security != Security::kNone) {
    MakeCertificates();
    absl::StrAppend(&server_config, "\ntls: {certificate: ", home_.path(),
                    "/server.pem, key: ", home_.path(), "/server.key, ca: ", home_.path(),
                    "/ca.pem}\naccess: {administrators: {users: [root]}}\n");
  }
  WriteFile(home_.path() + "/berthd.yaml", server_config + "\nlog: {level: warn}\n");
}

// The server's own by the openssl command: Berth issues those of clients.
void BenchCluster::MakeCertificates() {
  const NewAuthority made = MakeAuthority("bench", absl::Hours(24), absl::Now()).value();
  ca_ = made.certificate;
  authority_ =
      std::make_unique<Authority>(Authority::Open(made.certificate, made.key, absl::Now()).value());
  WriteFile(home_.path() + "/ca.pem", made.certificate);
  WriteFile(home_.path() + "/ca.key", made.key);
  WriteFile(home_.path() + "/server.ext", "subjectAltName=IP:127.0.0.1\n");
  const std::string command = absl::StrCat(
      "cd ", home_.path(),
      " && openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "
      "server.key -out server.csr -subj /CN=berthd >/dev/null 2>&1 && openssl x509 -req -in "
      "server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 1 -out server.pem -extfile "
      "server.ext >/dev/null 2>&1");
  if (std::system(command.c_str()) != 0) Fail("openssl cannot make a certificate");
}

std::shared_ptr<grpc::ChannelCredentials> BenchCluster::CredentialsOf(
    const std::string& user) const {
  if (security_ == Security::kNone) return grpc::InsecureChannelCredentials();
  const CertificateRequest request = MakeCertificateRequest().value();
  const std::string certificate =
      authority_
          ->Issue(request.request, {"berth", SpiffeId::Kind::kUser, user}, {"ml", "bench-users"},
                  absl::Hours(12), absl::Now())
          .value();
  return grpc::SslCredentials({ca_, request.key, certificate});
}

std::shared_ptr<grpc::Channel> BenchCluster::NewChannel(const std::string& user) const {
  grpc::ChannelArguments arguments;
  arguments.SetInt("grpc.use_local_subchannel_pool", 1);
  return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_), CredentialsOf(user),
                                   arguments);
}

void BenchCluster::WriteRules(const std::vector<std::string>& users) {
  v1::ChangeAccessRequest change;
  change.set_enforce(true);
  const auto grant = [&](const std::string& user, const std::string& role) {
    v1::AccessGrant* added = change.add_grant();
    added->mutable_subject()->set_user(user);
    added->set_role(role);
    added->set_queue("bench");
  };
  for (const std::string& user : users) grant(user, "submitter");
  for (int i = 0; i < 200; ++i) grant(absl::StrCat("other-", i), "viewer");
  v1::AccessGrant* group = change.add_grant();
  group->mutable_subject()->set_group("ml");
  group->set_role("viewer");
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::ChangeAccessResponse response;
  Check(v1::AccessService::NewStub(NewChannel("root"))->ChangeAccess(&context, change, &response),
        "ChangeAccess");
}

void BenchCluster::RunServer(const std::string& flag) {
  Process process({options_.programs + "/berthd", "--config", home_.path() + "/berthd.yaml",
                   "--data", home_.path() + "/data", flag},
                  home_.path() + "/berthd.log");
  while (process.Running()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

void BenchCluster::StartServer() {
  server_ = std::make_unique<Process>(
      std::vector<std::string>{
          options_.programs + "/berthd", "--config", home_.path() + "/berthd.yaml", "--listen",
          absl::StrCat("127.0.0.1:", port_), "--http", absl::StrCat("127.0.0.1:", http_port_),
          "--data", home_.path() + "/data"},
      home_.path() + "/berthd.log");
}

void BenchCluster::WaitServer() {
  WaitStandby();
  (void)Info();
}

void BenchCluster::WaitStandby() {
  const auto begin = Clock::now();
  while (!PortAnswers(port_)) {
    if (!server_->Running()) Fail("berthd ended: " + server_->LogTail());
    if (Clock::now() - begin > kStartTimeout) {
      Fail("berthd does not answer: " + server_->LogTail());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  // Only now: a channel whose first attempt is refused waits for seconds before the next.
  channel_ = NewChannel();
  jobs_ = v1::JobService::NewStub(channel_);
  watch_ = v1::WatchService::NewStub(channel_);
  cluster_ = v1::ClusterService::NewStub(channel_);
}

std::string BenchCluster::NodesYaml(const NodeSet& nodes) const {
  return absl::StrCat(
      "server: 127.0.0.1:", port_, "\nconnections: ", nodes.connections, "\nnodes:\n- name: \"",
      nodes.prefix, "[1-", nodes.count,
      "]\"\n  cpu: 64\n  memory: 1Ti\n  devices: {gpu: 8}\n  models: {gpu: H100}\n  runTime: ",
      nodes.run_time, "\n  labels: ", nodes.labels, "\n  failureRate: ", nodes.failure_rate, "\n",
      nodes.step_time.empty() ? "" : absl::StrCat("  stepTime: ", nodes.step_time, "\n"));
}

size_t BenchCluster::StartNodes(const NodeSet& nodes) {
  WriteFile(absl::StrCat(home_.path(), "/", nodes.prefix, ".yaml"), NodesYaml(nodes));
  prefixes_.push_back(nodes.prefix);
  agents_.emplace_back();
  RebootNodes(agents_.size() - 1);
  return agents_.size() - 1;
}

void BenchCluster::RebootNodes(size_t number) {
  const std::string path = absl::StrCat(home_.path(), "/", prefixes_[number]);
  agents_[number].reset();
  agents_[number] = std::make_unique<Process>(
      std::vector<std::string>{options_.programs + "/berth-agent", "--simulate", path + ".yaml"},
      path + ".log");
}

v1::ClusterInfo BenchCluster::Info() {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::ClusterInfo info;
  Check(cluster_->GetClusterInfo(&context, {}, &info), "GetClusterInfo");
  return info;
}

std::map<std::string, uint64_t> BenchCluster::ReadyEpochs() {
  const auto stub = v1::NodeService::NewStub(channel_);
  std::map<std::string, uint64_t> epochs;
  v1::ListNodesRequest request;
  request.set_page_size(1000);
  do {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::ListNodesResponse page;
    Check(stub->ListNodes(&context, request, &page), "ListNodes");
    for (const v1::Node& node : page.nodes())
      epochs[node.name()] = node.status().state() == v1::NODE_READY ? node.status().epoch() : 0;
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return epochs;
}

void BenchCluster::WaitNodes(int64_t ready) {
  const auto begin = Clock::now();
  int64_t seen = 0;
  while (Clock::now() - begin < kStartTimeout) {
    const v1::ClusterInfo info = Info();
    const auto found = info.nodes().find("READY");
    seen = found == info.nodes().end() ? 0 : found->second;
    if (seen >= ready) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  Fail(absl::StrCat("only ", seen, " of ", ready, " nodes are ready: ", agents_.back()->LogTail()));
}

void BenchCluster::CreateQueue(const std::string& name, bool no_gpus) {
  v1::CreateQueueRequest request;
  request.mutable_queue()->set_name(name);
  if (no_gpus)
    (*request.mutable_queue()->mutable_spec()->mutable_limit()->mutable_counts())["gpu"] = 0;
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::Queue queue;
  Check(v1::QueueService::NewStub(channel_)->CreateQueue(&context, request, &queue), "CreateQueue");
}

v1::Job MakeJob(std::string name, const std::string& queue, int gpus) {
  v1::Job job;
  job.set_name(std::move(name));
  job.mutable_spec()->set_queue(queue);
  v1::TaskGroup* group = job.mutable_spec()->add_groups();
  group->set_name("worker");
  group->set_replicas(1);
  group->mutable_resources()->set_cpu_millis(1000);
  if (gpus > 0) {
    v1::DeviceRequest* device = group->mutable_resources()->add_devices();
    device->set_kind("gpu");
    device->set_count(gpus);
  }
  group->add_command("train");
  group->add_command("--config=base.yaml");
  return job;
}

std::vector<v1::SubmitJobsRequest> MakeRequests(const std::string& prefix, const std::string& queue,
                                                int64_t total, int64_t batch, int gpus) {
  std::vector<v1::SubmitJobsRequest> requests;
  for (int64_t number = 0; number < total; ++number) {
    if (number % batch == 0)
      requests.emplace_back().set_request_id(absl::StrCat(prefix, "-", number));
    *requests.back().add_jobs() = MakeJob(absl::StrCat(prefix, "-", number), queue, gpus);
  }
  return requests;
}

void RegisterNodes(BenchCluster& cluster, int64_t nodes) {
  constexpr int64_t kAtOnce = 10'000;
  for (int64_t done = 0; done < nodes; done += kAtOnce) {
    const int64_t count = std::min(kAtOnce, nodes - done);
    cluster.StartNodes({.prefix = absl::StrCat("s", done / kAtOnce, "-n"), .count = count});
    cluster.WaitNodes(done + count);
    cluster.KillNodes();
  }
}

void FillQueue(BenchCluster& cluster, int64_t jobs) {
  cluster.CreateQueue("full", /*no_gpus=*/true);
  int gpus = 1;
  for (const char* kind : {"a", "b", "c", "d"}) {
    (void)SendAll(cluster, MakeRequests(kind, "full", jobs / 4, 1'000, gpus), 4, 2);
    gpus *= 2;
  }
  const v1::ClusterInfo info = cluster.Info();
  const auto pending = info.jobs().find("PENDING");
  if (pending == info.jobs().end() || pending->second != jobs) Fail("not all jobs are pending");
}

}  // namespace berth::bench
