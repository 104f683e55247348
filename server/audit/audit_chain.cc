#include "server/audit/audit_chain.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/files.h"

namespace berth {
namespace {

// So that what is deleted at once is a small part of the whole.
constexpr uint64_t kFilesOfAChain = 16;
constexpr uint64_t kGreatestFile = uint64_t{8} << 20;

ChainFiles::Options FilesFor(const std::string& directory, const AuditLimits& limits) {
  return {.directory = directory,
          .file_bytes = std::min(kGreatestFile, limits.max_bytes / kFilesOfAChain),
          .file_age = std::min(absl::Hours(24), limits.retention / kFilesOfAChain)};
}

}  // namespace

AuditChain::AuditChain(std::string directory, AuditLimits limits)
    : directory_(std::move(directory)), limits_(limits) {}

absl::Status AuditChain::Open() {
  if (files_ != nullptr) return absl::OkStatus();
  if (directory_.empty()) {
    return absl::FailedPreconditionError("this server has no data directory for an audit");
  }
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path parent = fs::path(directory_).parent_path();
  if (fs::create_directory(parent, error)) fs::permissions(parent, fs::perms::owner_all, error);
  if (error) return FileStatus(error, parent);
  absl::StatusOr<std::unique_ptr<ChainFiles>> files =
      ChainFiles::Open(FilesFor(directory_, limits_));
  if (!files.ok()) return files.status();
  files_ = *std::move(files);
  return absl::OkStatus();
}

absl::Status AuditChain::Append(absl::Time now, const std::vector<v1::AuditEntry>& entries) {
  if (absl::Status opened = Open(); !opened.ok()) return opened;
  std::vector<std::string> encoded;
  encoded.reserve(entries.size());
  for (const v1::AuditEntry& entry : entries) encoded.push_back(entry.SerializeAsString());
  return files_->Append(now, encoded);
}

absl::Status AuditChain::Tidy(absl::Time now, uint64_t revision) {
  if (absl::Status opened = Open(); !opened.ok()) return opened;
  absl::Status status = files_->Sync();
  const absl::Duration since = now - trimmed_;
  const bool recent = since >= absl::ZeroDuration() && since < kTrimEvery;
  if (recent && files_->bytes() <= limits_.max_bytes) return status;
  trimmed_ = now;
  status.Update(files_->Trim(now - limits_.retention, limits_.max_bytes));
  if (status.ok() && revision > 0) status = NoteRevision(revision);
  return status;
}

// Replaces the file as a whole. If a power cut loses it, more of the log is read again.
absl::Status AuditChain::NoteRevision(uint64_t revision) {
  const std::string aside = NotePath() + ".new";
  std::ofstream file(aside, std::ios::trunc);
  file << revision << " " << files_->last_sequence() << "\n";
  file.close();
  if (!file) return absl::ResourceExhaustedError(absl::StrCat(aside, ": cannot be written"));
  std::error_code error;
  std::filesystem::rename(aside, NotePath(), error);
  return FileStatus(error, NotePath());
}

uint64_t AuditChain::Noted() {
  if (!Open().ok()) return 0;
  std::ifstream file(NotePath());
  uint64_t revision = 0, entries = 0;
  file >> revision >> entries;
  return file && entries <= files_->last_sequence() ? revision : 0;
}

absl::StatusOr<v1::AuditEntry> AuditChain::Last() {
  if (absl::Status opened = Open(); !opened.ok()) return opened;
  const absl::StatusOr<std::string> last = files_->Last();
  if (!last.ok()) return last.status();
  v1::AuditEntry entry;
  if (!entry.ParseFromString(*last)) entry.Clear();
  entry.set_sequence(files_->last_sequence());
  return entry;
}

absl::Status AuditChain::Read(uint64_t after, absl::Time from,
                              absl::FunctionRef<bool(v1::AuditEntry entry)> visit) {
  if (absl::Status opened = Open(); !opened.ok()) return opened;
  return files_->Read(after, from, [&](uint64_t sequence, absl::string_view bytes) {
    v1::AuditEntry entry;
    if (!entry.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) entry.Clear();
    entry.set_sequence(sequence);
    return visit(std::move(entry));
  });
}

absl::StatusOr<ChainSummary> AuditChain::Verify() {
  if (absl::Status opened = Open(); !opened.ok()) return opened;
  return files_->Verify();
}

}  // namespace berth
