// Reads what supervisors wrote down of their tasks' reports (supervisor/notify.h).
#ifndef BERTH_CLIENTS_AGENT_NOTICE_FILES_H_
#define BERTH_CLIENTS_AGENT_NOTICE_FILES_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "clients/agent/interfaces.h"
#include "clients/agent/supervisor/notify.h"

namespace berth {

TaskNotices ToTaskNotices(const Notices& notices);

// What one simulated task reports.
class SimNotices {
 public:
  // `datagram`: as the task would send it to its NOTIFY_SOCKET.
  void Add(absl::string_view datagram, absl::Duration now);
  std::optional<TaskNotices> Read(NoticesVersion* version) const;

 private:
  Notices notices_;
  NoticesVersion version_;
};

// Of the tasks below `tasks_directory`, each in its directory ToString(id). A file that cannot be
// read is as if it was not there yet.
class NoticeFiles final : public NoticeSource {
 public:
  explicit NoticeFiles(std::string tasks_directory);
  std::optional<TaskNotices> Read(const TaskId& id, NoticesVersion* version) override;

 private:
  const std::string tasks_directory_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_NOTICE_FILES_H_
