#include "server/services/cluster_service.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/convert/node.h"
#include "server/convert/values.h"
#include "server/reads/cluster_totals.h"
#include "server/services/caller.h"
#include "support/log.h"
#include "support/version.h"

namespace berth {
namespace {

constexpr size_t kMaxBackupName = 128;
constexpr absl::Duration kBackupRetry = absl::Seconds(5);

void FillCounts(const ClusterState& state, v1::ClusterInfo& info) {
  for (size_t i = 0; i < kJobStates; ++i) {
    const auto job_state = static_cast<JobState>(i);
    const std::string name = v1::JobState_Name(JobStateToApi(job_state));
    (*info.mutable_jobs())[ShortName(name, "JOB_")] = state.jobs_in(job_state);
  }
  for (size_t i = 0; i < kTaskStates; ++i) {
    const auto task_state = static_cast<TaskState>(i);
    const std::string name = v1::TaskState_Name(TaskStateToApi(task_state));
    (*info.mutable_tasks())[ShortName(name, "TASK_")] = state.tasks_in(task_state);
  }
  ToProto(state.queues().At(kRootQueue).allocated, state.interner(), info.mutable_allocated());
}

void FillNodes(const ClusterState& state, const NodeTotals& totals, v1::ClusterInfo& info) {
  for (size_t i = 0; i < totals.by_state.size(); ++i) {
    const std::string name = v1::NodeState_Name(NodeStateToApi(static_cast<NodeState>(i)));
    (*info.mutable_nodes())[ShortName(name, "NODE_")] = totals.by_state[i];
  }
  (*info.mutable_nodes())["READY"] -= totals.ready_cordoned + totals.ready_draining;
  (*info.mutable_nodes())["CORDONED"] = totals.ready_cordoned;
  (*info.mutable_nodes())["DRAINING"] = totals.ready_draining;
  ToProto(totals.capacity, state.interner(), info.mutable_capacity());
}

// The name becomes that of a directory: it must not lead elsewhere.
absl::Status CheckBackupName(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
  if (plain && !name.empty() && name[0] != '.' && name.size() <= kMaxBackupName) {
    return absl::OkStatus();
  }
  return ViolationsError(absl::StatusCode::kInvalidArgument,
                         {{"name", absl::StrCat("must be at most ", kMaxBackupName,
                                                " letters, digits, '.', '_' and '-', and must not "
                                                "begin with '.'")}});
}

int64_t BytesBelow(const std::string& directory) {
  int64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(directory, error), end;
       !error && entry != end; entry.increment(error)) {
    if (entry->is_regular_file(error)) bytes += static_cast<int64_t>(entry->file_size(error));
  }
  return bytes;
}

}  // namespace

grpc::ServerUnaryReactor* ClusterService::GetClusterInfo(grpc::CallbackServerContext* context,
                                                         const v1::GetClusterInfoRequest*,
                                                         v1::ClusterInfo* response) {
  Reply<v1::ClusterInfo> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kClusterServiceGetClusterInfo, *context);
  if (!Enter(context_, call, reply)) return reactor;
  ReadView view(*context_.loop);
  if (absl::Status status = AdmitIn(context_, view, call); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  v1::ClusterInfo& info = *response;
  info.set_version(kBerthVersion);
  info.set_cluster_id(context_.store->ClusterId());
  info.set_incarnation(context_.store->Incarnation());
  info.set_store_format(context_.store->Format());
  info.set_newest_store_format(kStoreFormat);
  ToProto(start_, info.mutable_start_time());
  const std::string paused = context_.loop->PausedReason();
  info.set_accepting_work(paused.empty());
  info.set_not_accepting_reason(paused);
  FillProblems(info);
  v1::ClusterPause pause;
  if (maintenance_.Describe(context_.clock->Now(), &pause)) *info.mutable_pause() = pause;
  const NodeTotals totals = SumNodes(view, SystemClock().Now());
  view.Step([&](const ClusterState& state) {
    FillCounts(state, info);
    FillNodes(state, totals, info);
    return 0;
  });
  // On a full disk, data that was seen may not become durable for long. The response that reports
  // the full disk must not wait for it.
  if (!paused.empty()) {
    info.set_revision(context_.loop->DurableRevision());
    reply.Finish(absl::OkStatus());
    return reactor;
  }
  const absl::Duration patience = reply.patience();
  auto answer = [loop = context_.loop, reply = std::move(reply)](absl::Status durable) mutable {
    reply.response().set_revision(loop->DurableRevision());
    reply.Finish(reply.ShouldAnswer(durable) ? absl::OkStatus() : durable);
  };
  view.Answer(std::move(answer), patience);
  return reactor;
}

void ClusterService::FillProblems(v1::ClusterInfo& info) const {
  const bool open = context_.loop->Read(
      [](const ClusterState& state, uint64_t) { return !state.access().enforced(); });
  if (open && !context_.callers->IsLocal()) {
    info.add_problems(
        "no access rules: every client with a certificate may do everything (berth access init)");
  }
  const std::string waits = maintenance_.RestoreHoldText();
  if (!waits.empty()) info.add_problems(waits);
  if (backups_.health == nullptr) return;
  const std::string damage = backups_.health->Damage();
  if (!damage.empty()) info.add_problems(damage);
  if (backups_.health->reserve().bytes() == 0) {
    info.add_problems(
        "the store has no disk reserve: while the disk is full, berthd may be unable to restart");
  }
}

// The response has the end. ClusterInfo shows which agents hold the lease as they confirm it.
grpc::ServerUnaryReactor* ClusterService::PauseCluster(grpc::CallbackServerContext* context,
                                                       const v1::PauseClusterRequest* request,
                                                       v1::PauseClusterResponse* response) {
  Reply<v1::PauseClusterResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  Call call = context_.CallOf(Rpc::kClusterServicePauseCluster, *context);
  const absl::Duration how_long =
      request->has_duration() ? DurationFrom(request->duration()) : maintenance_.DefaultLength();
  if (absl::Status status = maintenance_.Check(how_long); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  Write(context_, call, std::move(reply), CommandClass::kEssential, 1,
        [this, how_long, by = TextOf(call)](Turn& turn, Rights&, v1::PauseClusterResponse& out) {
          LogInfo("the cluster is paused: agents get a longer lease",
                  {{"for", absl::FormatDuration(how_long)}, {"by", by}});
          turn.LogCommand();
          maintenance_.Begin(turn, how_long);
          ToProto(context_.clock->Now() + how_long, out.mutable_pause()->mutable_end());
          ToProto(how_long, out.mutable_pause()->mutable_left());
          return absl::OkStatus();
        });
  return reactor;
}

grpc::ServerUnaryReactor* ClusterService::ResumeCluster(grpc::CallbackServerContext* context,
                                                        const v1::ResumeClusterRequest*,
                                                        v1::ResumeClusterResponse* response) {
  Reply<v1::ResumeClusterResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kClusterServiceResumeCluster, *context);
  Write(context_, call, std::move(reply), CommandClass::kEssential, 1,
        [this, by = TextOf(call)](Turn& turn, Rights&, v1::ResumeClusterResponse&) {
          turn.LogCommand();
          LogInfo("the pause of the cluster has ended", {{"by", by}});
          maintenance_.End();
          return absl::OkStatus();
        });
  return reactor;
}

grpc::ServerUnaryReactor* ClusterService::ReloadConfig(grpc::CallbackServerContext* context,
                                                       const v1::ReloadConfigRequest* request,
                                                       v1::ReloadConfigResponse* response) {
  Reply<v1::ReloadConfigResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kClusterServiceReloadConfig, *context);
  if (!Enter(context_, call, reply)) return reactor;
  if (absl::Status status = AdmitNow(context_, call); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  if (!request->dry_run()) LogCall(context_, call);
  const absl::StatusOr<std::vector<ConfigChange>> changes = reloader_.Reload(request->dry_run());
  if (changes.ok()) {
    for (const ConfigChange& change : *changes) {
      v1::ConfigChange* out = response->add_changes();
      out->set_path(change.path);
      out->set_before(change.before);
      out->set_after(change.after);
      out->set_needs_restart(change.needs_restart);
    }
  }
  reply.Finish(changes.status());
  return reactor;
}

grpc::ServerUnaryReactor* ClusterService::FinalizeUpgrade(grpc::CallbackServerContext* context,
                                                          const v1::FinalizeUpgradeRequest* request,
                                                          v1::FinalizeUpgradeResponse* response) {
  Reply<v1::FinalizeUpgradeResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kClusterServiceFinalizeUpgrade, *context);
  if (!Enter(context_, call, reply)) return reactor;
  if (absl::Status status = AdmitNow(context_, call); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  const uint32_t before = context_.store->Format();
  response->set_format_before(before);
  response->set_format(kStoreFormat);
  if (request->dry_run() || before == kStoreFormat) {
    reply.Finish(absl::OkStatus());
    return reactor;
  }
  if (absl::Status formats = CheckFormats(); !formats.ok()) {
    reply.Finish(formats);
    return reactor;
  }
  Write(context_, call, std::move(reply), CommandClass::kEssential, 1,
        [](Turn& turn, Rights&, v1::FinalizeUpgradeResponse&) {
          turn.UseNewestFormat();
          return absl::OkStatus();
        });
  return reactor;
}

grpc::ServerUnaryReactor* ClusterService::Backup(grpc::CallbackServerContext* context,
                                                 const v1::BackupRequest* request,
                                                 v1::BackupResponse* response) {
  Reply<v1::BackupResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kClusterServiceBackup, *context);
  if (!Enter(context_, call, reply)) return reactor;
  if (absl::Status status = AdmitNow(context_, call); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  const std::string name =
      request->name().empty()
          ? absl::FormatTime("%Y%m%dT%H%M%SZ", context_.clock->Now(), absl::UTCTimeZone())
          : request->name();
  absl::Status status = CheckBackupName(name);
  if (status.ok() && backups_.directory.empty()) {
    status = absl::FailedPreconditionError("the server's configuration has no backupDirectory");
  }
  if (status.ok() && backing_up_.exchange(true)) {
    status = RetryLaterError(absl::StatusCode::kResourceExhausted, "another backup is in progress",
                             kBackupRetry);
  } else if (status.ok()) {
    LogCall(context_, call);
    backups_.executor->Run([this, name, reply = std::move(reply)]() mutable {
      const absl::Status made = MakeBackup(name, reply.response());
      backing_up_ = false;
      reply.Finish(made);
    });
    return reactor;
  }
  reply.Finish(status);
  return reactor;
}

absl::Status ClusterService::MakeBackup(const std::string& name, v1::BackupResponse& response) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::create_directory(backups_.directory, error)) {
    fs::permissions(backups_.directory, fs::perms::owner_all, error);
  }
  if (error) return absl::InternalError(absl::StrCat(backups_.directory, ": ", error.message()));
  const std::string directory = absl::StrCat(backups_.directory, "/", name);
  const uint64_t revision = backups_.store->LastSequence();
  absl::Status status = backups_.store->Backup(directory);
  if (!status.ok()) {
    LogError("the backup failed", {{"directory", directory}, {"error", status}});
    return status;
  }
  response.set_directory(directory);
  response.set_revision(revision);
  response.set_bytes(BytesBelow(directory));
  LogInfo("backup created", {{"directory", directory}, {"revision", revision}});
  return absl::OkStatus();
}

}  // namespace berth
