// HistoryDb: the database of the usage history: a RocksDB with column families, in a directory of
// its own or in memory. Bytes only. Writes are atomic and not synced: after a power cut it is as it
// was some writes ago. One writer at a time; readers are thread-safe.
#ifndef BERTH_SERVER_HISTORY_HISTORY_DB_H_
#define BERTH_SERVER_HISTORY_HISTORY_DB_H_

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

enum class HistoryFamily : uint8_t {
  kMeta,
  kQueue,
  kNode,
  kJobSpec,
  kLabels,
  kTask,
  kJob,
  kMinute,
  kHour,
  kDay,
  kMinuteCapacity,
  kHourCapacity,
  kDayCapacity,
  kEnded,
  kEndedByUid,
};
inline constexpr size_t kHistoryFamilies = 15;

// What is written at once.
class HistoryBatch {
 public:
  void Put(HistoryFamily family, std::string key, std::string value) {
    entries_.push_back({family, std::move(key), std::move(value)});
  }
  void Delete(HistoryFamily family, std::string key) {
    entries_.push_back({family, std::move(key), std::nullopt});
  }
  // From `from` to before `to`.
  void DeleteRange(HistoryFamily family, std::string from, std::string to) {
    entries_.push_back({family, std::move(from), std::move(to), /*range=*/true});
  }
  // All of the family.
  void Clear(HistoryFamily family) { DeleteRange(family, "", std::string(64, '\xff')); }
  bool empty() const { return entries_.empty(); }

 private:
  friend class HistoryDb;
  struct Entry {
    HistoryFamily family;
    std::string key;
    std::optional<std::string> value;  // nullopt: delete
    bool range = false;                // delete from key to value
  };
  std::vector<Entry> entries_;
};

class HistoryDb {
 public:
  // "" = in memory. DATA_LOSS: it is damaged; other errors: it cannot be opened now.
  static absl::StatusOr<std::unique_ptr<HistoryDb>> Open(const std::string& directory);
  ~HistoryDb();
  HistoryDb(const HistoryDb&) = delete;
  HistoryDb& operator=(const HistoryDb&) = delete;

  // RESOURCE_EXHAUSTED: the disk is full. After any error nothing was written, and the database
  // must be opened again.
  absl::Status Write(const HistoryBatch& batch);

  // A state that later writes do not change. The database outlives it.
  class View {
   public:
    explicit View(const HistoryDb& db);
    ~View();
    View(const View&) = delete;
    View& operator=(const View&) = delete;

    // NOT_FOUND: there is none.
    absl::StatusOr<std::string> Get(HistoryFamily family, absl::string_view key) const;
    // Entries with from <= key < to, ascending, or descending with `back`. Stops when `visit`
    // returns false.
    using Visit = absl::FunctionRef<bool(absl::string_view key, absl::string_view value)>;
    absl::Status Scan(HistoryFamily family, absl::string_view from, absl::string_view to,
                      Visit visit, bool back = false) const;

   private:
    const HistoryDb& db_;
    const rocksdb::Snapshot* const snapshot_;
  };

  // Of its files, about.
  uint64_t Bytes() const;
  // Gives back the space of what was deleted in the range. Takes long.
  absl::Status Compact(HistoryFamily family, absl::string_view from, absl::string_view to);

 private:
  HistoryDb() = default;
  rocksdb::ColumnFamilyHandle* Family(HistoryFamily family) const {
    return families_[static_cast<size_t>(family) + 1];
  }

  std::unique_ptr<rocksdb::Env> memory_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;  // owned; "default" first
};

}  // namespace berth

#endif  // BERTH_SERVER_HISTORY_HISTORY_DB_H_
