#include "clients/slurm/submit.h"

#include <pwd.h>
#include <unistd.h>

#include <climits>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/slurm/numbers.h"
#include "clients/slurm/pages.h"

namespace berth {
namespace {

absl::StatusOr<std::vector<v1::Node>> ReadyNodes(Client& client) {
  v1::ListNodesRequest request;
  request.mutable_filter()->add_states(v1::NODE_READY);
  std::vector<v1::Node> nodes;
  const absl::Status status =
      ReadPages(client, &v1::NodeService::StubInterface::ListNodes, request,
                [&](const v1::ListNodesResponse& page) {
                  nodes.insert(nodes.end(), page.nodes().begin(), page.nodes().end());
                });
  if (!status.ok()) return status;
  return nodes;
}

}  // namespace

std::string UserName() {
  const passwd* user = getpwuid(geteuid());
  return user != nullptr ? user->pw_name : absl::StrCat(geteuid());
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

std::string CurrentDirectory() {
  std::error_code error;
  const auto path = std::filesystem::current_path(error);
  return error ? "/" : path.string();
}

absl::StatusOr<Variables> ExportedVariables(const std::string& option, const Variables& own) {
  Variables exported;
  const auto copy_all = [&] {
    for (const auto& [name, value] : own) {
      const bool ours = absl::StartsWith(name, "SLURM") || absl::StartsWith(name, "SBATCH_") ||
                        absl::StartsWith(name, "BERTH_");
      if (!ours) exported[name] = value;
    }
  };
  if (option.empty()) {
    copy_all();
    return exported;
  }
  for (absl::string_view part : absl::StrSplit(option, ',', absl::SkipEmpty())) {
    const size_t equals = part.find('=');
    const std::string name(part.substr(0, equals));
    if (name == "ALL" && equals == absl::string_view::npos) {
      copy_all();
    } else if (name == "NIL" || (name == "NONE" && equals == absl::string_view::npos)) {
      exported.clear();
    } else if (equals != absl::string_view::npos) {
      exported[name] = std::string(part.substr(equals + 1));
    } else if (const auto found = own.find(name); found != own.end()) {
      exported.insert(*found);
    }
  }
  return exported;
}

AllocationContext AllocationContextOf(SlurmContext& context) {
  return {context.config, context.Now(), context.zone};
}

absl::StatusOr<v1::Job> PrepareJob(SlurmContext& context, AllocationRequest* request,
                                   cli::v1::SlurmBatch* batch) {
  if (NeedsNodes(*request)) {
    const absl::StatusOr<Client*> client = context.client();
    if (!client.ok()) return client.status();
    const auto nodes = ReadyNodes(**client);
    if (!nodes.ok()) return nodes.status();
    if (absl::Status status = SpreadTasks(*nodes, request); !status.ok()) return status;
  }
  if (absl::Status status = CompleteSizes(request); !status.ok()) return status;
  const auto& accounts = context.config.default_accounts();
  if (const auto found = accounts.find(UserName());
      request->account.empty() && found != accounts.end())
    request->account = found->second;
  if (request->directory.empty()) request->directory = CurrentDirectory();
  if (request->directory[0] != '/')
    request->directory = absl::StrCat(CurrentDirectory(), "/", request->directory);
  batch->set_submit_directory(CurrentDirectory());
  batch->set_submit_host(HostName());
  const auto name_of = [&](const std::string& number) -> absl::StatusOr<std::string> {
    const auto numbers = ParseJobNumbers(number);
    if (!numbers.ok()) return numbers.status();
    if (numbers->size() != 1) return absl::InvalidArgumentError("name one job");
    const absl::StatusOr<Client*> client = context.client();
    if (!client.ok()) return client.status();
    const absl::StatusOr<v1::Job> job = JobByNumber(**client, numbers->front());
    if (!job.ok()) return job.status();
    return job->name();
  };
  return JobOf(*request, AllocationContextOf(context), UserName(), name_of, batch);
}

absl::StatusOr<v1::SubmitJobsResponse::Submitted> SubmitSlurmJob(SlurmContext& context, v1::Job job,
                                                                 const cli::v1::SlurmBatch& batch) {
  absl::Status put = SetBatch(batch, job.mutable_spec()->mutable_groups(0));
  if (!put.ok()) return put;
  v1::SubmitJobsRequest request;
  *request.add_jobs() = std::move(job);
  const absl::StatusOr<Client*> client = context.client();
  if (!client.ok()) return client.status();
  const absl::StatusOr<v1::SubmitJobsResponse> submitted = (*client)->Submit(std::move(request));
  if (!submitted.ok()) return submitted.status();
  return submitted->jobs(0);
}

}  // namespace berth
