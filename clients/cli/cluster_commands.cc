#include <map>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/command.h"
#include "clients/cli/human.h"
#include "clients/cli/page.h"
#include "support/proto_time.h"
#include "support/version.h"

namespace berth {
namespace {

constexpr absl::Duration kConfirmWithin = absl::Seconds(5);
constexpr absl::Duration kConfirmLook = absl::Milliseconds(50);

absl::StatusOr<v1::ClusterInfo> GetInfo(Session& session) {
  return session.Call(&v1::ClusterService::StubInterface::GetClusterInfo,
                      v1::GetClusterInfoRequest());
}

// "3 running, 1 pending", by name.
std::string Counts(const google::protobuf::Map<std::string, int64_t>& counts) {
  std::string text;
  for (const auto& count : std::map<std::string, int64_t>(counts.begin(), counts.end())) {
    if (count.second == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", count.second, " ",
                    absl::AsciiStrToLower(count.first));
  }
  return text.empty() ? "none" : text;
}

// "12 nodes hold the longer lease; 2 do not: n3, n7".
std::string HoldersText(const v1::ClusterPause& pause) {
  std::string text =
      absl::StrCat(pause.nodes_holding(), pause.nodes_holding() == 1 ? " node" : " nodes", " hold",
                   pause.nodes_holding() == 1 ? "s" : "", " the longer lease");
  if (pause.nodes_not_holding() == 0) return text;
  const int more = pause.nodes_not_holding() - pause.not_holding_size();
  absl::StrAppend(&text, "; ", pause.nodes_not_holding(),
                  pause.nodes_not_holding() == 1 ? " does" : " do",
                  " not: ", absl::StrJoin(pause.not_holding(), ", "),
                  more > 0 ? absl::StrCat(" and ", more, " more") : "");
  return text;
}

std::string InfoText(const v1::ClusterInfo& info, const Session& session) {
  Page page;
  page.Add("Cluster", info.cluster_id());
  page.Add("Incarnation", absl::StrCat(info.incarnation()));
  page.Add("Server", absl::StrCat(session.server(), ", version ", info.version()));
  if (info.has_start_time()) page.Add("Up for", HumanAge(true, info.start_time(), session.Now()));
  const Word accepting = info.accepting_work()
                             ? Word{"yes", Color::kGreen}
                             : Word{absl::StrCat("no: ", info.not_accepting_reason()), Color::kRed};
  page.Add("Accepts work", Paint(accepting, session.colors()));
  const bool newest = info.store_format() == info.newest_store_format();
  if (info.has_pause()) {
    page.Add("Paused", absl::StrCat("berthd may be down for ",
                                    HumanDuration(DurationFrom(info.pause().left())), "; ",
                                    HoldersText(info.pause())));
  }
  for (const std::string& problem : info.problems()) {
    page.Add("Problem", Paint({problem, Color::kRed}, session.colors()));
  }
  page.Add("Store format",
           absl::StrCat(info.store_format(),
                        newest ? ""
                               : absl::StrCat(", newest ", info.newest_store_format(),
                                              ": berth cluster finalize")));
  page.Add("Revision", absl::StrCat(info.revision()));
  page.Add("Nodes", Counts(info.nodes()));
  page.Add("Jobs", Counts(info.jobs()));
  page.Add("Tasks", Counts(info.tasks()));
  page.Add("Capacity", HumanResources(info.capacity()));
  page.Add("Allocated", HumanResources(info.allocated()));
  return page.Text();
}

ExitCode Info(Session& session) {
  const absl::StatusOr<v1::ClusterInfo> info = GetInfo(session);
  if (!info.ok()) return session.Finish(info.status());
  switch (session.options.format) {
    case Format::kJson:
      session.out() << JsonOf(*info) << "\n";
      break;
    case Format::kYaml:
      session.out() << YamlOf(*info);
      break;
    case Format::kName:
      session.out() << info->cluster_id() << "\n";
      break;
    default:
      session.out() << InfoText(*info, session);
  }
  return ExitCode::kOk;
}

std::string ChangeText(const v1::ConfigChange& change) {
  return absl::StrCat(change.path(), ": ", change.before(), " -> ", change.after(),
                      change.needs_restart() ? " (needs a restart)" : "", "\n");
}

ExitCode Reload(Session& session, bool dry_run) {
  v1::ReloadConfigRequest request;
  request.set_dry_run(dry_run);
  const absl::StatusOr<v1::ReloadConfigResponse> response =
      session.Call(&v1::ClusterService::StubInterface::ReloadConfig, request);
  if (!response.ok()) return session.Finish(response.status());
  if (session.options.format == Format::kJson) {
    session.out() << JsonOf(*response) << "\n";
    return ExitCode::kOk;
  }
  if (session.options.format == Format::kYaml) {
    session.out() << YamlOf(*response);
    return ExitCode::kOk;
  }
  for (const v1::ConfigChange& change : response->changes()) session.out() << ChangeText(change);
  if (response->changes().empty()) session.out() << "nothing has changed\n";
  return ExitCode::kOk;
}

ExitCode Finalize(Session& session, bool dry_run) {
  v1::FinalizeUpgradeRequest request;
  request.set_dry_run(dry_run);
  const absl::StatusOr<v1::FinalizeUpgradeResponse> response =
      session.Call(&v1::ClusterService::StubInterface::FinalizeUpgrade, request);
  if (!response.ok()) return session.Finish(response.status());
  if (session.options.format == Format::kJson) {
    session.out() << JsonOf(*response) << "\n";
  } else if (session.options.format == Format::kYaml) {
    session.out() << YamlOf(*response);
  } else if (response->format_before() == response->format()) {
    session.out() << "the store already has format " << response->format() << "\n";
  } else {
    session.out() << (dry_run ? "would upgrade" : "upgraded") << " from store format "
                  << response->format_before() << " to " << response->format()
                  << (dry_run ? "; older versions of berthd could not open it any more\n"
                              : "; older versions of berthd can no longer open it\n");
  }
  return ExitCode::kOk;
}

ExitCode Backup(Session& session, const std::string& name) {
  v1::BackupRequest request;
  request.set_name(name);
  const absl::StatusOr<v1::BackupResponse> response =
      session.Call(&v1::ClusterService::StubInterface::Backup, request);
  if (!response.ok()) return session.Finish(response.status());
  switch (session.options.format) {
    case Format::kJson:
      session.out() << JsonOf(*response) << "\n";
      break;
    case Format::kYaml:
      session.out() << YamlOf(*response);
      break;
    case Format::kName:
      session.out() << response->directory() << "\n";
      break;
    default:
      session.out() << response->directory() << ", " << HumanBytes(response->bytes())
                    << ", revision " << response->revision() << "\nto restore it: berthd --restore "
                    << response->directory() << "\n";
  }
  return ExitCode::kOk;
}

// Agents confirm within milliseconds; disconnected agents never do.
absl::StatusOr<v1::ClusterPause> AwaitHolders(Session& session) {
  const absl::Time end = session.Now() + kConfirmWithin;
  for (;;) {
    const absl::StatusOr<v1::ClusterInfo> info = GetInfo(session);
    if (!info.ok()) return info.status();
    if (info->pause().nodes_not_holding() == 0 || session.Now() >= end) return info->pause();
    session.io().environment.sleeper->Sleep(kConfirmLook);
  }
}

ExitCode Pause(Session& session, const std::string& length) {
  v1::PauseClusterRequest request;
  if (!length.empty()) {
    ToProto(DurationFrom(length), request.mutable_duration());
  }
  const absl::StatusOr<v1::PauseClusterResponse> response =
      session.Call(&v1::ClusterService::StubInterface::PauseCluster, request);
  if (!response.ok()) return session.Finish(response.status());
  const absl::StatusOr<v1::ClusterPause> pause = AwaitHolders(session);
  if (!pause.ok()) return session.Finish(pause.status());
  if (session.options.format == Format::kJson) {
    session.out() << JsonOf(*pause) << "\n";
  } else if (session.options.format == Format::kYaml) {
    session.out() << YamlOf(*pause);
  } else {
    session.out() << "paused: berthd may be down for "
                  << HumanDuration(DurationFrom(response->pause().left())) << "; "
                  << HoldersText(*pause) << "\n";
  }
  return ExitCode::kOk;
}

ExitCode Resume(Session& session) {
  const absl::StatusOr<v1::ResumeClusterResponse> response =
      session.Call(&v1::ClusterService::StubInterface::ResumeCluster, v1::ResumeClusterRequest());
  if (response.ok())
    session.out() << "resumed: agents get the usual lease with their next heartbeat\n";
  return session.Finish(response.status());
}

ExitCode Version(Session& session, bool client_only) {
  session.out() << "berth " << kBerthVersion << "\n";
  if (client_only) return ExitCode::kOk;
  const absl::StatusOr<v1::ClusterInfo> info = GetInfo(session);
  if (info.ok())
    session.out() << "berthd " << info->version() << " at " << session.server() << "\n";
  return session.Finish(info.status());
}

}  // namespace

void AddClusterCommands(CLI::App& app, Session& session) {
  CLI::App& noun = *AddNoun(app, "cluster", "inspect and administer the cluster");
  AddCommand(noun, session, "info", "show state and capacity of the cluster", Info);
  AddClusterUsage(noun, session);
  auto dry_run = std::make_shared<bool>(false);
  CLI::App* reload = AddCommand(noun, session, "reload", "let the server reload its configuration",
                                [dry_run](Session& s) { return Reload(s, *dry_run); });
  reload->add_flag("--dry-run", *dry_run, "only print what would change");
  auto finalize_dry_run = std::make_shared<bool>(false);
  CLI::App* finalize =
      AddCommand(noun, session, "finalize", "complete an upgrade; there is no way back afterwards",
                 [finalize_dry_run](Session& s) { return Finalize(s, *finalize_dry_run); });
  finalize->add_flag("--dry-run", *finalize_dry_run, "only print what would change");
  auto backup_name = std::make_shared<std::string>();
  CLI::App* backup = AddCommand(noun, session, "backup", "back up the store while the server runs",
                                [backup_name](Session& s) { return Backup(s, *backup_name); });
  backup->alias("snapshot");  // the input of berth-sim whatif
  backup->add_option("name", *backup_name, "name of the backup; default: the time");
  auto pause_length = std::make_shared<std::string>();
  CLI::App* pause = AddCommand(noun, session, "pause",
                               "let tasks run longer without berthd, before it is stopped",
                               [pause_length](Session& s) { return Pause(s, *pause_length); });
  pause->alias("maintenance");
  pause->add_option("--for", *pause_length, "how long berthd may be down; default 30m")
      ->check(kIsDuration);
  AddCommand(noun, session, "resume", "end a pause early", Resume);
  AddMemberCommands(noun, session);
  auto client_only = std::make_shared<bool>(false);
  CLI::App* version =
      AddCommand(app, session, "version", "print the versions of this program and of the server",
                 [client_only](Session& s) { return Version(s, *client_only); });
  version->add_flag("--client", *client_only, "print only the version of this program");
}

}  // namespace berth
