// The bytes of a write-ahead log after a power cut: where its valid part ends.
#include "core/base/check.h"
#include "storage/hash_chain.h"
#include "storage/rocksdb/wal_tail.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {

void FuzzOne(absl::string_view input) {
  const LogScan scan = ScanLog(input);
  BERTH_CHECK(scan.good <= input.size());
  BERTH_CHECK(!scan.bad.has_value() || (*scan.bad >= scan.good && *scan.bad < input.size()));
  BERTH_CHECK(scan.bad.has_value() || !scan.zeros);
  // The valid part is also valid without the bytes after it.
  const LogScan whole = ScanLog(input.substr(0, scan.good));
  BERTH_CHECK(whole.good == scan.good && !whole.bad.has_value());
  const auto link = ParseChainEntry(input);
  BERTH_CHECK(link.ok() == (input.size() >= sizeof(ChainHash)));
}

}  // namespace berth::fuzz
