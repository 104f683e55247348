#include "clients/agent/notice_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

NoticesVersion VersionOf(const struct stat& info) {
  return {.file = info.st_ino,
          .time_ns = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec,
          .bytes = info.st_size};
}

void ToCheckpoint(const NoticeCheckpoint& from, v1::Checkpoint* to) {
  to->set_step(from.step);
  to->set_bytes(from.bytes);
  if (v1::Checkpoint::Where_IsValid(static_cast<int>(from.where)))
    to->set_where(static_cast<v1::Checkpoint::Where>(from.where));
}

}  // namespace

TaskNotices ToTaskNotices(const Notices& notices) {
  TaskNotices out;
  out.told.set_ready(notices.ready);
  out.told.set_stopping(notices.stopping);
  out.told.set_status(notices.status);
  if (notices.step) out.told.set_step(*notices.step);
  out.told.set_step_time_us(notices.step_time_us);
  if (notices.checkpoint) ToCheckpoint(*notices.checkpoint, out.told.mutable_checkpoint());
  out.told.set_dropped(static_cast<uint64_t>(std::max<int64_t>(notices.dropped, 0)));
  if (notices.progress_ns != 0) out.progress = absl::Nanoseconds(notices.progress_ns);
  out.not_before = absl::Nanoseconds(notices.not_before_ns);
  return out;
}

void SimNotices::Add(absl::string_view datagram, absl::Duration now) {
  const int64_t now_ns = std::max<int64_t>(absl::ToInt64Nanoseconds(now), 1);
  AddNotice(ParseNotice({datagram.data(), datagram.size()}), now_ns, &notices_);
  ++version_.file;
}

std::optional<TaskNotices> SimNotices::Read(NoticesVersion* version) const {
  if (version_ == *version) return std::nullopt;
  *version = version_;
  return ToTaskNotices(notices_);
}

NoticeFiles::NoticeFiles(std::string tasks_directory)
    : tasks_directory_(std::move(tasks_directory)) {}

// The file may be replaced between the two calls: then it is read again the next time.
std::optional<TaskNotices> NoticeFiles::Read(const TaskId& id, NoticesVersion* version) {
  const std::string path =
      absl::StrCat(tasks_directory_, "/", ToString(id), kProgressDirectory, "/", kNoticesFile);
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || VersionOf(info) == *version) return std::nullopt;
  std::string text;
  Notices notices;
  if (ReadWholeFile(path, &text) != 0 || !DecodeNotices(text, &notices)) return std::nullopt;
  *version = VersionOf(info);
  return ToTaskNotices(notices);
}

}  // namespace berth
