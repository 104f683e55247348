#include "server/daemon.h"

#include <signal.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/access/table.h"
#include "server/app.h"
#include "server/config/config.h"
#include "server/convert/values.h"
#include "server/ha/high_availability.h"
#include "server/ha_store.h"
#include "server/loop/loop.h"
#include "storage/fsck.h"
#include "storage/restore.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "support/command_line.h"
#include "support/file_limit.h"
#include "support/grpc_log.h"
#include "support/log.h"
#include "support/tls.h"
#include "support/version.h"

namespace berth {
namespace {

struct Flags {
  std::string config;
  std::string listen;
  std::string http;
  std::string data;
  std::string log_level;
  std::string fsck;
  std::string restore;
  bool access_table = false;
  bool check_config = false;
  bool ha_init = false;
  bool ha_leave = false;
};

int Fail(const absl::Status& status) {
  FlushLog();
  std::cerr << "berthd: " << status.message() << "\n";
  return absl::IsInvalidArgument(status) ? kExitUsage : 1;
}

// Damage does not repair itself: explains how to recover.
int FailOn(const std::string& directory, const absl::Status& status) {
  const int code = Fail(status);
  if (absl::IsDataLoss(status)) std::cerr << "berthd: " << HowToRestore(directory) << "\n";
  return code;
}

// Before any thread starts, so that all inherit the mask and only the main thread waits for these.
sigset_t BlockSignals() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a write beyond a file size limit fails, as on a full disk
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Flags override the file.
absl::StatusOr<config::v1::Server> ConfigFrom(const Flags& flags) {
  ConfigPlaces places;
  absl::StatusOr<config::v1::Server> config = ReadConfig(flags.config, &places);
  if (!config.ok()) return config.status();
  // The value of a flag has no position in the file.
  const auto take = [&places](const std::string& value, const char* field, std::string* out) {
    if (value.empty()) return;
    *out = value;
    places.positions.erase(field);
  };
  take(flags.listen, "listen", config->mutable_listen());
  take(flags.http, "http_listen", config->mutable_http_listen());
  if (!flags.data.empty()) {  // relative to the working directory of the shell
    take(std::filesystem::absolute(flags.data), "data_directory", config->mutable_data_directory());
  }
  if (!flags.log_level.empty()) {
    take(flags.log_level, "log.level", config->mutable_log()->mutable_level());
  }
  if (absl::Status status = CompleteConfig(*config); !status.ok()) return Located(status, places);
  return config;
}

// Debian's Abseil checks for deadlocks at every lock operation, which is meant for debug builds.
void DisableDeadlockDetection() {
#ifdef NDEBUG
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
}

int Serve(const Flags& flags) {
  const sigset_t signals = BlockSignals();
  DisableDeadlockDetection();
  RaiseFileLimit();  // every agent and every client uses a descriptor
  LogForGrpc(LogLevel::kWarn);
  absl::StatusOr<config::v1::Server> config = ConfigFrom(flags);
  if (!config.ok()) return Fail(config.status());
  if (absl::Status log = StartLog(config->log().level(), config->log().file()); !log.ok()) {
    return Fail(log);
  }
  LogInfo("berthd starts", {{"version", kBerthVersion}, {"data", config->data_directory()}});
  const auto health = std::make_shared<StoreHealth>(config->data_directory());
  const auto open_store = [&]() -> absl::StatusOr<OpenedStore> {
    if (config->has_ha()) return OpenReplicatedStore(*config, health);
    return OpenSingleStore(*config, health);
  };
  const Reloader::Read reread =
      flags.config.empty() ? Reloader::Read() : [&flags] { return ConfigFrom(flags); };
  absl::StatusOr<std::unique_ptr<App>> app = App::Start(*config, open_store, reread, health);
  if (!app.ok()) return FailOn(config->data_directory(), app.status());
  LogInfo("berthd is ready", {{"listen", config->listen()},
                              {"port", (*app)->port()},
                              {"http", config->http_listen()},
                              {"revision", (*app)->loop().DurableRevision()}});
  int signal_number = SIGHUP;
  while (sigwait(&signals, &signal_number) == 0 && signal_number == SIGHUP) {
    (*app)->Reload().IgnoreError();  // it logs the result
  }
  LogInfo("berthd stops", {{"signal", strsignal(signal_number)}});
  const bool handed_over = (*app)->handed_over();
  if (!handed_over && !(*app)->TryHandOver()) (*app)->GrantStopLease();
  (*app)->Stop();
  app->reset();
  LogInfo("berthd has stopped");
  FlushLog();
  return handed_over ? kExitToRestart : 0;
}

// What --ha-init and --ha-leave do.
int ChangeHa(const Flags& flags) {
  signal(SIGPIPE, SIG_IGN);
  LogForGrpc(LogLevel::kError);
  const absl::StatusOr<config::v1::Server> config = ConfigFrom(flags);
  if (!config.ok()) return Fail(config.status());
  const absl::Status done =
      flags.ha_init ? BeginHa(*config, std::cout) : LeaveHa(*config, std::cout);
  return done.ok() ? 0 : Fail(done);
}

// What --check-config does: all that a start checks before it opens the store, but for ports.
int CheckConfig(const Flags& flags) {
  LogForGrpc(LogLevel::kError);
  const absl::StatusOr<config::v1::Server> config = ConfigFrom(flags);
  if (!config.ok()) return Fail(config.status());
  if (const auto own = MakeServerCredentials(TlsFilesOf(config->tls())); !own.ok())
    return Fail(own.status());
  if (const auto etcd = MakeChannelCredentials(TlsFilesOf(config->ha().tls())); !etcd.ok())
    return Fail(etcd.status());
  std::cout << (flags.config.empty() ? "the defaults" : flags.config) << ": valid\n";
  return 0;
}

int CheckStore(const std::string& directory) {
  absl::Status status = Fsck(directory, std::cout);
  if (status.ok()) status = FsckAudit(directory, std::cout);
  return status.ok() ? 0 : FailOn(directory, status);
}

// If anything is damaged, it is the backup itself: there is no other copy to fall back on.
int RestoreStore(const Flags& flags) {
  const absl::StatusOr<config::v1::Server> config = ConfigFrom(flags);
  if (!config.ok()) return Fail(config.status());
  const absl::Status status = Restore(flags.restore, config->data_directory(), std::cout,
                                      DurationFrom(config->longest_lease()));
  if (!status.ok()) return Fail(status);
  std::cout << "restored   " << config->data_directory() << "\n";
  return 0;
}

void AddOptions(CLI::App& cli, Flags* flags) {
  cli.add_option("--config", flags->config, "configuration file (YAML)");
  cli.add_option("--listen", flags->listen, "ADDRESS:PORT for gRPC; default 127.0.0.1:7070");
  cli.add_option("--http", flags->http,
                 "ADDRESS:PORT for metrics and health, or \"off\"; default 127.0.0.1:7071");
  cli.add_option("--data", flags->data, "directory of the store; default /var/lib/berth");
  cli.add_option("--log-level", flags->log_level, "trace, debug, info, warn or error");
  cli.add_option("--fsck", flags->fsck,
                 "check the store in DIR and exit; berthd must not be running")
      ->type_name("DIR");
  cli.add_option("--restore", flags->restore,
                 "check the backup in DIR, copy it to the directory of the store, which must be "
                 "missing or empty, and exit")
      ->type_name("DIR");
  cli.add_flag("--ha-init", flags->ha_init,
               "begin the cluster in etcd with the store of this server, and exit (see ha in the "
               "configuration)");
  cli.add_flag("--ha-leave", flags->ha_leave,
               "end the cluster in etcd, so that this server goes on alone, and exit");
  cli.add_flag(
      "--check-config", flags->check_config,
      "check the configuration and the files that it names, and exit: 0 if they are valid, "
      "else 2");
  cli.add_flag("--access-table", flags->access_table,
               "print which right each method of the API needs, and exit");
  cli.set_version_flag("--version", std::string("berthd ") + kBerthVersion);
}

}  // namespace

int RunDaemon(int argc, char** argv) {
  Flags flags;
  CLI::App cli("berthd: the control plane of a Berth cluster");
  AddOptions(cli, &flags);
  if (const auto code = ParseCommandLine(cli, argc, argv); code.has_value()) return *code;
  if (flags.access_table) {
    std::cout << AccessTable();
    return 0;
  }
  if (flags.check_config) return CheckConfig(flags);
  if (flags.ha_init || flags.ha_leave) return ChangeHa(flags);
  if (!flags.restore.empty()) return RestoreStore(flags);
  return flags.fsck.empty() ? Serve(flags) : CheckStore(flags.fsck);
}

}  // namespace berth
