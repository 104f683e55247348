#include "clients/agent/journal.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/crc32c.h"

namespace berth {
namespace {

constexpr size_t kHeaderBytes = 8;
constexpr uint64_t kGrowth = 4;  // compacted at this multiple of the size after the last compaction

void PutU32(uint32_t value, std::string* out) {
  for (int shift = 0; shift < 32; shift += 8)
    out->push_back(static_cast<char>(value >> shift & 0xff));
}

uint32_t GetU32(absl::string_view bytes) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i)
    value = value << 8 | static_cast<uint8_t>(bytes[static_cast<size_t>(i)]);
  return value;
}

// The payload of the frame at the start of `bytes`, or nothing if it is not intact. A payload is
// never empty.
absl::string_view FrameAt(absl::string_view bytes) {
  if (bytes.size() < kHeaderBytes) return {};
  const size_t length = GetU32(bytes);
  if (length == 0 || length > kMaxFrameBytes || length > bytes.size() - kHeaderBytes) return {};
  const absl::string_view payload = bytes.substr(kHeaderBytes, length);
  const uint32_t crc = Crc32c(Crc32c(0, bytes.substr(0, 4)), payload);
  return crc == GetU32(bytes.substr(4)) ? payload : absl::string_view();
}

bool AnyFrameIn(absl::string_view bytes) {
  for (size_t at = 0; at + kHeaderBytes < bytes.size(); ++at) {
    if (!FrameAt(bytes.substr(at)).empty()) return true;
  }
  return false;
}

}  // namespace

std::string EncodeFrame(absl::string_view payload) {
  std::string frame;
  PutU32(static_cast<uint32_t>(payload.size()), &frame);
  PutU32(Crc32c(Crc32c(0, frame), payload), &frame);
  frame.append(payload.data(), payload.size());
  return frame;
}

FileJournal::FileJournal(Disk& disk, std::string directory, Options options)
    : disk_(disk), directory_(std::move(directory)), options_(options) {}

absl::StatusOr<std::unique_ptr<FileJournal>> FileJournal::Open(Disk& disk,
                                                               const std::string& directory,
                                                               Options options) {
  std::unique_ptr<FileJournal> journal(new FileJournal(disk, directory, options));
  if (absl::Status status = journal->Load(); !status.ok()) return status;
  return journal;
}

absl::Status FileJournal::Load() {
  absl::StatusOr<std::string> text = disk_.ReadFile(Path());
  const bool fresh = absl::IsNotFound(text.status());
  if (fresh) text = std::string();
  if (!text.ok()) return text.status();
  absl::string_view rest = *text;
  while (!rest.empty()) {
    const absl::string_view payload = FrameAt(rest);
    if (payload.empty() && AnyFrameIn(rest.substr(1))) {
      return absl::DataLossError(
          absl::StrCat(Path(), ": damaged at byte ", size_, ", with intact records after it"));
    }
    if (payload.empty()) break;  // torn
    agent::v1::JournalBatch batch;
    if (!batch.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
      return absl::DataLossError(absl::StrCat(Path(), ": unreadable record at byte ", size_));
    }
    for (const agent::v1::JournalRecord& record : batch.records()) state_.Apply(record);
    if (state_.identity.version() > kJournalVersion) {
      return absl::FailedPreconditionError(
          absl::StrCat(Path(), ": written by a newer agent (format ", state_.identity.version(),
                       ", this agent supports ", kJournalVersion, ")"));
    }
    size_ += kHeaderBytes + payload.size();
    rest.remove_prefix(kHeaderBytes + payload.size());
  }
  auto file = disk_.OpenAppend(Path(), false);
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  compact_at_ = std::max<uint64_t>(options_.compact_bytes, size_);
  if (!rest.empty()) {
    if (absl::Status status = file_->Truncate(size_); !status.ok()) return status;
    if (absl::Status status = file_->Sync(); !status.ok()) return status;
  }
  return fresh ? disk_.SyncDirectory(directory_) : absl::OkStatus();
}

absl::Status FileJournal::Append(const std::vector<agent::v1::JournalRecord>& records) {
  if (!broken_.ok()) return broken_;
  agent::v1::JournalBatch batch = later_;
  for (const agent::v1::JournalRecord& record : records) *batch.add_records() = record;
  if (batch.records().empty()) return absl::OkStatus();
  const std::string frame = EncodeFrame(batch.SerializeAsString());
  absl::Status status = file_->Append(frame);
  if (absl::IsResourceExhausted(status)) {
    // Remove the partial write; if even that fails, the state of the file is unknown.
    if (absl::Status cut = file_->Truncate(size_); !cut.ok()) broken_ = cut;
    return broken_.ok() ? status : broken_;
  }
  if (status.ok()) status = file_->Sync();
  if (!status.ok()) return broken_ = status;
  size_ += frame.size();
  for (const agent::v1::JournalRecord& record : batch.records()) state_.Apply(record);
  later_.Clear();
  if (size_ < compact_at_) return absl::OkStatus();
  const absl::Status compacted = Compact();
  if (absl::IsResourceExhausted(compacted))
    return absl::OkStatus();  // the old file is intact; retried later
  return compacted;
}

void FileJournal::AppendLater(agent::v1::JournalRecord record) {
  *later_.add_records() = std::move(record);
}

absl::Status FileJournal::Compact() {
  agent::v1::JournalBatch batch;
  *batch.add_records()->mutable_identity() = state_.identity;
  for (const auto& [id, task] : state_.tasks) *batch.add_records()->mutable_task() = task;
  const std::string frame = EncodeFrame(batch.SerializeAsString());
  compact_at_ = std::max<uint64_t>(options_.compact_bytes, kGrowth * frame.size());
  const std::string temporary = Path() + ".new";
  auto file = disk_.OpenAppend(temporary, true);
  if (!file.ok()) return file.status();
  if (absl::Status status = (*file)->Append(frame); !status.ok()) return status;
  if (absl::Status status = (*file)->Sync(); !status.ok()) return status;
  if (absl::Status status = disk_.Rename(temporary, Path()); !status.ok()) return broken_ = status;
  file_ = *std::move(file);
  size_ = frame.size();
  if (absl::Status status = disk_.SyncDirectory(directory_); !status.ok()) return broken_ = status;
  return absl::OkStatus();
}

}  // namespace berth
