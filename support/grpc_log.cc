#include "support/grpc_log.h"

#include <grpc/support/log.h>

#include <atomic>
#include <string>

#include "absl/strings/match.h"

namespace berth {
namespace {

std::atomic<LogLevel> error_level{LogLevel::kWarn};  // gRPC accepts only a plain function

std::atomic<std::string (*)()> handshake_peers{nullptr};

}  // namespace

void SetHandshakePeers(std::string (*peers)()) { handshake_peers = peers; }

void LogForGrpc(LogLevel errors) {
  error_level = errors;
  gpr_set_log_function([](gpr_log_func_args* args) {
    const bool is_error = args->severity == GPR_LOG_SEVERITY_ERROR;
    const LogLevel level = is_error ? error_level.load() : LogLevel::kDebug;
    std::string (*const peers)() = handshake_peers.load();
    if (is_error && peers != nullptr && absl::StrContains(args->message, "andshake")) {
      return LogLine(level, "gRPC", {{"message", args->message}, {"peer", peers()}});
    }
    LogLine(level, "gRPC", {{"message", args->message}});
  });
}

void SilenceGrpc() {
  gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace berth
