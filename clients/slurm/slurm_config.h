// /etc/berth/slurm.yaml (berth/config/v1/slurm.proto), and the connection of the Slurm commands.
#ifndef BERTH_CLIENTS_SLURM_SLURM_CONFIG_H_
#define BERTH_CLIENTS_SLURM_SLURM_CONFIG_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "berth/config/v1/slurm.pb.h"
#include "clients/cli/session.h"

namespace berth {

// The file that BERTH_SLURM_CONFIG names, or /etc/berth/slurm.yaml if that exists; otherwise the
// defaults. INVALID_ARGUMENT with file, line and column.
absl::StatusOr<config::v1::SlurmConfig> LoadSlurmConfig();
absl::Status CheckSlurmConfig(const config::v1::SlurmConfig& config);

// What a command works with.
struct SlurmContext {
  std::string command;  // "sbatch": begins each message
  config::v1::SlurmConfig config;
  std::unique_ptr<Session> session;

  std::ostream& out() { return session->out(); }
  std::ostream& err() { return session->err(); }
  // "sbatch: error: TEXT" in a line for each violation; the exit code of a failed command.
  int Fail(const absl::Status& status);
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
