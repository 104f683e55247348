// RocksDB's log format: blocks of 32 KiB. Each contains physical records, which never span blocks,
// and less than a header of padding. A user record is one kFull, or kFirst, kMiddle..., kLast.
//
//   checksum 4 | length 2 | type 1 | log number 4, of recyclable types | payload
//
// The checksum is a masked CRC-32C of everything from the type on (db/log_format.h of RocksDB 7).
#include <algorithm>
#include <array>

#include "storage/rocksdb/wal_tail.h"
#include "support/crc32c.h"

namespace berth {
namespace {

constexpr size_t kBlock = size_t{32} << 10;
constexpr size_t kSector = 512;
constexpr size_t kHeader = 7;
constexpr size_t kRecyclableHeader = 11;

enum Type : uint8_t { kZero, kFull, kFirst, kMiddle, kLast, kRecyclableFull, kRecyclableLast = 8 };
constexpr uint8_t kCompression = 9;  // names the algorithm, before the first record

uint32_t Number(absl::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

uint32_t Masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

// A physical record at an offset, if there is one. `left`: the rest of its block.
struct Physical {
  explicit Physical(absl::string_view left)
      : type(static_cast<uint8_t>(left[6])),
        header(type >= kRecyclableFull && type <= kRecyclableLast ? kRecyclableHeader : kHeader),
        size(header + Number(left.substr(4, 2))) {
    good = type != kZero && size <= left.size() &&
           Masked(Crc32c(0, left.substr(6, size - 6))) == Number(left.substr(0, 4));
  }
  bool recyclable() const { return header == kRecyclableHeader; }
  // kFull to kLast, independent of the header.
  uint8_t part() const { return recyclable() ? static_cast<uint8_t>(type - 4) : type; }

  uint8_t type;
  size_t header, size;
  bool good;
};

// A record that starts after `from` and before `to`, both in one block.
bool GoodRecordWithin(absl::string_view content, size_t from, size_t to) {
  const size_t block_end = std::min(content.size(), (from / kBlock + 1) * kBlock);
  for (size_t at = from + 1; at < to && at + kHeader <= block_end; ++at) {
    if (Physical(content.substr(at, block_end - at)).good) return true;
  }
  return false;
}

bool ZerosReachInto(absl::string_view content, size_t bad) {
  const size_t last = content.find_last_not_of('\0');
  const size_t run = last == absl::string_view::npos ? 0 : last + 1;
  if (run < bad + kHeader) return true;  // includes its type, which is never zero
  const size_t sector = (run + kSector - 1) / kSector * kSector;
  if (sector >= content.size()) return false;
  const size_t block_end = std::min(content.size(), (bad / kBlock + 1) * kBlock);
  const Physical record(content.substr(bad, block_end - bad));
  const size_t end = std::min(block_end, bad + record.size);
  return sector < end && !GoodRecordWithin(content, bad, sector);
}

}  // namespace

LogScan ScanLog(absl::string_view content) {
  LogScan scan;
  bool recyclable = false, inside = false;
  for (size_t at = 0; at < content.size();) {
    const size_t block_end = (at / kBlock + 1) * kBlock;
    const absl::string_view left = content.substr(at, block_end - at);
    const bool ends = block_end > content.size();  // in the middle of a block
    const size_t padding = recyclable ? kRecyclableHeader : kHeader;
    if (block_end - at < padding && left.find_first_not_of('\0') == absl::string_view::npos) {
      at += left.size();
      continue;
    }
    if (left.size() < kHeader) {
      at += left.size();  // partial header; RocksDB ignores other padding
      continue;
    }
    const Physical record(left);
    if (!record.good && ends && record.type != kZero && record.size > left.size()) return scan;
    const bool follows = record.type == kCompression ||
                         inside == (record.part() == kMiddle || record.part() == kLast);
    if (!record.good || !follows || record.type > kCompression) {
      scan.bad = at;
      scan.zeros = !record.good && ZerosReachInto(content, at);
      return scan;
    }
    recyclable = recyclable || record.recyclable();
    inside = record.type != kCompression && (record.part() == kFirst || record.part() == kMiddle);
    at += record.size;
    if (!inside) scan.good = at;
  }
  return scan;
}

}  // namespace berth
