#include "support/grpc_log.h"

#include <grpc/support/log.h>

#include <atomic>

namespace berth {
namespace {

std::atomic<LogLevel> error_level{LogLevel::kWarn};  // gRPC takes a plain function

}  // namespace

void LogForGrpc(LogLevel errors) {
  error_level = errors;
  gpr_set_log_function([](gpr_log_func_args* args) {
    const bool is_error = args->severity == GPR_LOG_SEVERITY_ERROR;
    LogLine(is_error ? error_level.load() : LogLevel::kDebug, "gRPC", {{"message", args->message}});
  });
}

void SilenceGrpc() {
  gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace berth
