#include "storage/rocksdb/acked_file.h"

#include <array>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "support/crc32c.h"

namespace berth {
namespace {

constexpr uint64_t kSlots = 2;
constexpr uint64_t kSlotBytes = 512;  // a sector: written completely or not at all

std::string Line(const Acknowledged& acknowledged) {
  const std::string text = absl::StrFormat("batch %020d log %020d bytes %020d", acknowledged.batch,
                                           acknowledged.log, acknowledged.bytes);
  return absl::StrFormat("%s sum %08x\n", text, Crc32c(0, text));
}

// Accepts only exactly what was written.
std::optional<Acknowledged> Parse(absl::string_view slot) {
  const absl::string_view line = slot.substr(0, slot.find('\n') + 1);  // npos + 1 = 0
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  Acknowledged found;
  const bool numbers = words.size() == 8 && absl::SimpleAtoi(words[1], &found.batch) &&
                       absl::SimpleAtoi(words[3], &found.log) &&
                       absl::SimpleAtoi(words[5], &found.bytes);
  return numbers && Line(found) == line ? std::optional(found) : std::nullopt;
}

}  // namespace

Acknowledged AckedFile::Read() {
  Acknowledged latest;
  std::string text;
  if (!rocksdb::ReadFileToString(file_system_.get(), path_, &text).ok()) return latest;
  text.resize(kSlots * kSlotBytes);
  for (uint64_t slot = 0; slot < kSlots; ++slot) {
    const auto found = Parse(absl::string_view(text).substr(slot * kSlotBytes, kSlotBytes));
    if (!found.has_value() || found->batch < latest.batch) continue;
    latest = *found;
    slot_ = (slot + 1) % kSlots;
  }
  return latest;
}

bool AckedFile::Open() {
  const rocksdb::IOOptions options;
  if (!file_system_->FileExists(path_, options, nullptr).ok()) {
    const std::string empty(kSlots * kSlotBytes, '\n');
    rocksdb::WriteStringToFile(file_system_.get(), empty, path_);
  }
  return file_system_->NewRandomRWFile(path_, {}, &file_, nullptr).ok();
}

void AckedFile::Write(const Acknowledged& acknowledged) {
  if (file_ == nullptr && !Open()) return;
  const bool written =
      file_->Write(slot_ * kSlotBytes, Line(acknowledged), rocksdb::IOOptions(), nullptr).ok();
  if (written) slot_ = (slot_ + 1) % kSlots;
}

}  // namespace berth
