// /etc/berth/slurm.yaml (berth/config/v1/slurm.proto), and the connection of the Slurm commands.
#ifndef BERTH_CLIENTS_SLURM_SLURM_CONFIG_H_
#define BERTH_CLIENTS_SLURM_SLURM_CONFIG_H_

#include <iostream>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "berth/config/v1/slurm.pb.h"
#include "clients/session/identity.h"

namespace berth {

// The file that BERTH_SLURM_CONFIG names, or /etc/berth/slurm.yaml if that exists; otherwise the
// defaults. INVALID_ARGUMENT with file, line and column.
absl::StatusOr<config::v1::SlurmConfig> LoadSlurmConfig();
absl::Status CheckSlurmConfig(const config::v1::SlurmConfig& config);

// What a command works with.
class SlurmContext {
 public:
  std::string command;  // "sbatch": begins each message
  config::v1::SlurmConfig config;
  ConnectionOptions connection;
  ClientEnvironment environment = SystemEnvironment();
  absl::TimeZone zone = absl::LocalTimeZone();

  std::ostream& out() { return std::cout; }
  std::ostream& err() { return std::cerr; }
  absl::Time Now() const { return environment.clock->Now(); }
  // Connects at the first call. Answers are safe to print (support/visible_message.h).
  absl::StatusOr<Client*> client();
  // client()->Call(...).
  template <class Stub, class Request, class Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request) {
    const absl::StatusOr<Client*> opened = client();
    if (!opened.ok()) return opened.status();
    return (*opened)->Call(method, request);
  }
  // That answers, or all that were given.
  const std::string& server() const {
    return client_ != nullptr ? client_->server() : connection.client.server;
  }
  // "sbatch: error: TEXT" in a line for each violation; the exit code of a failed command.
  int Fail(const absl::Status& status);

 private:
  std::unique_ptr<Client> client_;
};

// With the same variables of the environment as `berth`: BERTH_SERVER, BERTH_TLS_*, BERTH_AUTH...
absl::StatusOr<SlurmContext> OpenSlurm(const std::string& command);

// berth-slurm on the nodes.
std::string SlurmProgram(const config::v1::SlurmConfig& config);

const config::v1::SlurmPartition* FindPartition(const config::v1::SlurmConfig& config,
                                                const std::string& name);
// The default one; null: there is no list, and each queue is a partition.
const config::v1::SlurmPartition* DefaultPartition(const config::v1::SlurmConfig& config);
const config::v1::SlurmQos* FindQos(const config::v1::SlurmConfig& config, const std::string& name);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_SLURM_CONFIG_H_
