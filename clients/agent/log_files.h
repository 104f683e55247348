// Reads output captured by supervisors (supervisor/log_writer.h), even while it is written and
// rotated.
#ifndef BERTH_CLIENTS_AGENT_LOG_FILES_H_
#define BERTH_CLIENTS_AGENT_LOG_FILES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "clients/agent/interfaces.h"

namespace berth {

// Output of the tasks below `tasks_directory`, each in its directory ToString(id). Skips output
// that rotation removed before it was read. NOT_FOUND for a task without a directory.
class LogFiles final : public LogSource {
 public:
  explicit LogFiles(std::string tasks_directory);
  absl::StatusOr<std::unique_ptr<LogCursor>> Open(const v1::ReadLog& request) override;

 private:
  const std::string tasks_directory_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_LOG_FILES_H_
