#include "clients/slurm/slurm_config.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "support/config_file.h"
#include "support/visible.h"
#include "support/visible_message.h"

namespace berth {
namespace {

constexpr char kSlurmConfigFile[] = "/etc/berth/slurm.yaml";
constexpr char kDefaultServer[] = "127.0.0.1:7070";

bool IsAboutOwnJob(const std::string& command) {
  return command == "srun" || command == "scontrol" || command == "berth-rsh";
}

std::string SettingOf(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

template <class Items>
absl::Status CheckNames(const Items& items, absl::string_view field) {
  std::set<std::string> names;
  for (const auto& item : items) {
    if (item.name().empty())
      return absl::InvalidArgumentError(absl::StrCat(field, ": without a name"));
    if (!names.insert(item.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat(field, ": ", item.name(), " is named twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSlurmConfig(const config::v1::SlurmConfig& config) {
  if (absl::Status status = CheckNames(config.partitions(), "partitions"); !status.ok())
    return status;
  if (absl::Status status = CheckNames(config.qos(), "qos"); !status.ok()) return status;
  if (absl::Status status = CheckNames(config.accounts(), "accounts"); !status.ok()) return status;
  for (const auto& [user, account] : config.default_accounts()) {
    const auto is_it = [&](const auto& known) { return known.name() == account; };
    if (std::any_of(config.accounts().begin(), config.accounts().end(), is_it)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("default_accounts: ", user, ": ", account, " is not in accounts"));
  }
  int defaults = 0;
  for (const auto& partition : config.partitions()) defaults += partition.default_() ? 1 : 0;
  if (defaults > 1)
    return absl::InvalidArgumentError("partitions: only one may have default: true");
  for (const auto& [feature, label] : config.features()) {
    if (label.find('=') != std::string::npos && label[0] != '=') continue;
    return absl::InvalidArgumentError(absl::StrCat("features: ", feature, ": expected KEY=VALUE"));
  }
  return CheckAbsolutePath(config.program());
}

absl::StatusOr<config::v1::SlurmConfig> LoadSlurmConfig() {
  config::v1::SlurmConfig config;
  std::string path = SettingOf("BERTH_SLURM_CONFIG");
  if (path.empty() && access(kSlurmConfigFile, F_OK) == 0) path = kSlurmConfigFile;
  ConfigPlaces places;
  if (!path.empty()) {
    if (absl::Status status = ReadConfigFile(path, &config, &places); !status.ok()) return status;
    if (absl::Status status = CheckSlurmConfig(config); !status.ok())
      return Located(status, places);
  }
  if (config.cluster_name().empty()) config.set_cluster_name("berth");
  return config;
}

absl::StatusOr<Client*> SlurmContext::client() {
  if (client_ == nullptr) {
    auto opened = OpenClient(&connection, environment);
    if (!opened.ok()) return opened.status();
    client_ = *std::move(opened);
  }
  return client_.get();
}

int SlurmContext::Fail(const absl::Status& status) {
  if (status.ok()) return 0;
  const std::vector<Violation> violations = ViolationsOf(status);
  for (const Violation& violation : violations) {
    err() << command << ": error: " << Visible(violation.field)
          << (violation.field.empty() ? "" : ": ") << Visible(violation.description) << "\n";
  }
  if (violations.empty()) err() << command << ": error: " << VisibleLines(status.message()) << "\n";
  if (absl::IsUnavailable(status))
    err() << command << ": error: is berthd running at " << server() << "?\n";
  return 1;
}

absl::StatusOr<SlurmContext> OpenSlurm(const std::string& command) {
  absl::StatusOr<config::v1::SlurmConfig> config = LoadSlurmConfig();
  if (!config.ok()) return config.status();
  SlurmContext context;
  context.command = command;
  context.config = *std::move(config);
  ConnectionOptions& options = context.connection;
  options.client.server = SettingOf("BERTH_SERVER");
  // A task's own socket is for its own job: others are reached as outside of jobs, if it is known
  // how.
  const bool socket = absl::StartsWith(options.client.server, "unix:");
  if (socket && !IsAboutOwnJob(command) && !context.config.server().empty())
    options.client.server = context.config.server();
  if (options.client.server.empty()) options.client.server = context.config.server();
  if (options.client.server.empty()) options.client.server = kDefaultServer;
  options.client.tls = {.certificate = SettingOf("BERTH_TLS_CERTIFICATE"),
                        .key = SettingOf("BERTH_TLS_KEY"),
                        .ca = SettingOf("BERTH_TLS_CA")};
  options.auth_socket = SettingOf("BERTH_AUTH_SOCKET");
  options.auth = SettingOf("BERTH_AUTH");
  options.client.on_answer = [](google::protobuf::Message* answer) { MakeVisible(answer); };
  return context;
}

std::string SlurmProgram(const config::v1::SlurmConfig& config) {
  if (!config.program().empty()) return config.program();
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  return std::string(path, size > 0 ? static_cast<size_t>(size) : 0);
}

const config::v1::SlurmPartition* FindPartition(const config::v1::SlurmConfig& config,
                                                const std::string& name) {
  for (const auto& partition : config.partitions()) {
    if (partition.name() == name) return &partition;
  }
  return nullptr;
}

const config::v1::SlurmPartition* DefaultPartition(const config::v1::SlurmConfig& config) {
  for (const auto& partition : config.partitions()) {
    if (partition.default_()) return &partition;
  }
  return config.partitions().empty() ? nullptr : &config.partitions(0);
}

const config::v1::SlurmQos* FindQos(const config::v1::SlurmConfig& config,
                                    const std::string& name) {
  for (const auto& qos : config.qos()) {
    if (qos.name() == name) return &qos;
  }
  return nullptr;
}

}  // namespace berth
