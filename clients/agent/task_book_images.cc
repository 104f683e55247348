// TaskBook: a task that is prepared again, in another version of its image.
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/agent/task_book.h"

namespace berth {

using agent::v1::TaskRecord;

// The tag moved between the pulls of two members: this one is to have what the others have.
bool TaskBook::WantsOtherImage(const Entry& entry, const v1::Prepare& message) const {
  const std::string& wanted = message.launch().image_digest();
  const v1::TaskReport& has = entry.record.report();
  if (entry.record.phase() != TaskRecord::PREPARED || entry.foreign || entry.silent) return false;
  if (!wanted.empty() && wanted != has.image_digest()) return true;
  for (const v1::ImageDigest& image : message.launch().container_images()) {
    for (const v1::ImageDigest& own : has.container_images()) {
      if (own.image() == image.image() && own.digest() != image.digest()) return true;
    }
  }
  return false;
}

// Until it is prepared, the journal does not know the task, as for any Prepare.
void TaskBook::PrepareAgain(Instant now, const TaskId& id, const v1::Prepare& message) {
  Entry& entry = tasks_.at(id);
  agent::v1::JournalRecord record;
  *record.mutable_dropped() = ToKey(id);
  const absl::Status dropped = journal_.Append({record});
  runner_.Discard(id);
  if (!dropped.ok()) {
    if (!absl::IsResourceExhausted(dropped)) fatal_ = dropped;
    v1::TaskReport report;
    report.set_state(v1::TaskReport::REFUSED);
    report.set_fault(v1::TaskReport::NODE);
    report.set_message(absl::StrCat("agent journal: ", dropped.message()));
    return End(now, id, entry, std::move(report));
  }
  unacked_.erase(entry.record.report().report_id());
  entry.record.clear_report();
  entry.record.set_acked(false);
  entry.record.set_phase(TaskRecord::PHASE_UNSPECIFIED);
  entry.record.mutable_launch()->set_image_digest(message.launch().image_digest());
  *entry.record.mutable_launch()->mutable_container_images() = message.launch().container_images();
  if (entry.record.port() != 0) entry.port = entry.record.port();
  TryPrepare(now, id, entry);
}

}  // namespace berth
