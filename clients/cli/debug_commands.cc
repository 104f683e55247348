// berth debug bundle: what somebody who helps needs to know, in one file.
#include <stdio.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/command.h"
#include "clients/cli/debug_bundle.h"
#include "clients/cli/human.h"
#include "support/proto_json.h"
#include "support/version.h"

namespace berth {
namespace {

constexpr int kMostJobs = 10000;
constexpr int kMostExplained = 20;
constexpr size_t kMostLocal = size_t{32} << 20;  // bytes of what one command prints

// What programs of this machine tell. Each is a fixed text: nothing of users is in it.
struct LocalCommand {
  const char* file;
  const char* command;
};
constexpr LocalCommand kLocal[] = {
    {"journal.txt",
     "journalctl -u berthd -u berth-agent -u berth-web -u berth-authd --since -2h --no-pager "
     "-o short-iso-precise | tail -c 30000000"},
    {"metrics.txt", "curl -fsS -m 20 http://127.0.0.1:7071/metrics"},
    {"ready.txt", "curl -sS -m 5 http://127.0.0.1:7071/readyz"},
    {"configuration.txt", "tail -n +1 /etc/berth/*.yaml"},
    {"system.txt",
     "uname -a; cat /etc/os-release; uptime; nproc; free; df -h; cat /proc/pressure/* "
     "/proc/mounts; ls -l /var/lib/berth; dpkg -l 'berth*' python3-berth"},
};

constexpr char kReadMe[] =
    "Made by berth debug bundle. Of jobs it has names, sizes and states, and not what users "
    "wrote:\n"
    "commands, environments, labels, annotations, images, paths. Names of jobs, queues, nodes and\n"
    "users are in it. Messages of states and the log (local/journal.txt) may name files, "
    "addresses\n"
    "and whatever a message says. Look through it before you give it away.\n";

struct BundleArguments {
  std::string file;
  int jobs = kMostJobs;
  bool no_local = false;
};

class Bundle {
 public:
  Bundle(Session& session, std::filesystem::path directory)
      : session_(session), directory_(std::move(directory)) {}

  void Add(const std::string& name, const std::string& text) {
    const std::filesystem::path path = directory_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary);
    if (!(file << text).flush())
      NoteMissing(name, absl::InternalError(absl::StrCat(path.string(), " cannot be written")));
  }

  // What the server answers, or why it does not.
  template <class Stub, class Request, class Response>
  void Ask(const std::string& name,
           grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
           const Request& request) {
    const absl::StatusOr<Response> response = session_.Call(method, request);
    if (!response.ok()) return NoteMissing(name, response.status());
    Add(absl::StrCat(name, ".json"), JsonOf(*response) + "\n");
  }

  // All pages, one JSON object in each line.
  template <class Stub, class Request, class Response>
  void AskAll(const std::string& name,
              grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
              const Request& request) {
    std::string text;
    const absl::Status status =
        List<Stub, Request, Response>(method, request, [&](const Response& page) {
          absl::StrAppend(&text, WriteJson(page), "\n");
          return true;
        });
    if (!status.ok()) NoteMissing(name, status);
    if (!text.empty()) Add(absl::StrCat(name, ".json"), text);
  }

  template <class Stub, class Request, class Response>
  absl::Status List(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, absl::FunctionRef<bool(const Response&)> page) {
    const absl::StatusOr<Client*> client = session_.client();
    if (!client.ok()) return client.status();
    return (*client)->List<Stub, Request, Response>(method, request, page);
  }

  void NoteMissing(const std::string& name, const absl::Status& status) {
    missing_.push_back(absl::StrCat(name, ": ", std::string(status.message())));
  }
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  Session& session_;
  const std::filesystem::path directory_;
  std::vector<std::string> missing_;
};

void AddJobs(Bundle& bundle, int most) {
  std::string text;
  std::vector<std::string> pending;
  int count = 0;
  const absl::Status status =
      bundle.List<v1::JobService::StubInterface, v1::ListJobsRequest, v1::ListJobsResponse>(
          &v1::JobService::StubInterface::ListJobs, v1::ListJobsRequest(),
          [&](const v1::ListJobsResponse& page) {
            for (v1::Job job : page.jobs()) {
              if (++count > most) return false;
              if (job.status().state() == v1::JOB_PENDING && pending.size() < kMostExplained)
                pending.push_back(job.name());
              HideUserTexts(&job);
              absl::StrAppend(&text, WriteJson(job), "\n");
            }
            return true;
          });
  if (!status.ok()) bundle.NoteMissing("jobs", status);
  if (count > most)
    bundle.NoteMissing("jobs", absl::OutOfRangeError(absl::StrCat("only the first ", most)));
  bundle.Add("jobs.json", text);
  for (const std::string& name : pending) {
    if (name.find('/') != std::string::npos) continue;  // a server that is not ours
    v1::ExplainJobRequest request;
    request.set_job(name);
    bundle.Ask(absl::StrCat("explain/", name), &v1::ExplainService::StubInterface::ExplainJob,
               request);
  }
}

void AddFromServer(Bundle& bundle, const BundleArguments& arguments) {
  bundle.Ask("info", &v1::ClusterService::StubInterface::GetClusterInfo,
             v1::GetClusterInfoRequest());
  bundle.Ask("members", &v1::ClusterService::StubInterface::ListMembers, v1::ListMembersRequest());
  bundle.AskAll("queues", &v1::QueueService::StubInterface::ListQueues, v1::ListQueuesRequest());
  bundle.Ask("shares", &v1::QueueService::StubInterface::ListQueueShares,
             v1::ListQueueSharesRequest());
  bundle.AskAll("priority-classes", &v1::PriorityClassService::StubInterface::ListPriorityClasses,
                v1::ListPriorityClassesRequest());
  bundle.AskAll("nodes", &v1::NodeService::StubInterface::ListNodes, v1::ListNodesRequest());
  bundle.AskAll("hypernodes", &v1::HyperNodeService::StubInterface::ListHyperNodes,
                v1::ListHyperNodesRequest());
  AddJobs(bundle, arguments.jobs);
}

std::string OutputOf(const char* command) {
  std::string text;
  FILE* pipe = popen(absl::StrCat("{ ", command, "; } 2>&1").c_str(), "re");
  if (pipe == nullptr) return "cannot be run\n";
  char buffer[1 << 16];
  while (const size_t read = fread(buffer, 1, sizeof buffer, pipe)) {
    if (text.size() < kMostLocal) text.append(buffer, read);
  }
  pclose(pipe);
  return text;
}

void AddFromHere(Bundle& bundle) {
  for (const LocalCommand& local : kLocal) {
    bundle.Add(absl::StrCat("local/", local.file), WithoutSecrets(OutputOf(local.command)));
  }
}

ExitCode MakeBundle(Session& session, const BundleArguments& arguments) {
  const std::string name = absl::StrCat(
      "berth-debug-", absl::FormatTime("%Y%m%dT%H%M%SZ", session.Now(), absl::UTCTimeZone()));
  const std::string file = arguments.file.empty() ? absl::StrCat(name, ".tar.gz") : arguments.file;
  std::string directory = (std::filesystem::temp_directory_path() / "berth-debug-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr)
    return session.Finish(absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", directory)));
  const auto remove = absl::MakeCleanup([&] {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  });
  Bundle bundle(session, directory);
  AddFromServer(bundle, arguments);
  if (!arguments.no_local) AddFromHere(bundle);
  bundle.Add("README.txt",
             absl::StrCat(kReadMe, "\nberth ", kBerthVersion, ", server ", session.server(), "\n",
                          bundle.missing().empty() ? "" : "\nmissing:\n",
                          absl::StrJoin(bundle.missing(), "\n"), "\n"));
  if (absl::Status status = WriteBundle(directory, name, file); !status.ok())
    return session.Finish(status);
  for (const std::string& missing : bundle.missing())
    session.Warn(absl::StrCat("missing: ", missing));
  session.out() << file << ", "
                << HumanBytes(static_cast<int64_t>(std::filesystem::file_size(file)))
                << ": look through it before you give it away\n";
  return ExitCode::kOk;
}

}  // namespace

void AddDebugCommands(CLI::App& app, Session& session) {
  CLI::App* noun = AddNoun(app, "debug", "collect what somebody who helps needs to know");
  auto arguments = std::make_shared<BundleArguments>();
  CLI::App* bundle = AddCommand(
      *noun, session, "bundle",
      "write state, metrics, logs and configurations into one file, without what users wrote",
      [arguments](Session& s) { return MakeBundle(s, *arguments); });
  bundle->add_option("file", arguments->file, "default: berth-debug-TIME.tar.gz");
  bundle->add_option("--jobs", arguments->jobs, "how many jobs at most; default 10000")
      ->check(CLI::Range(0, 1000000));
  bundle->add_flag("--no-local", arguments->no_local,
                   "only what the server tells: nothing of this machine");
}

}  // namespace berth
