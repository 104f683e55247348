// Fields of records that a newer version wrote and this version does not know. They are kept next
// to the state and appended whenever their record is rewritten, so that a downgrade and upgrade
// lose nothing. Normally empty. Not thread-safe.
#ifndef BERTH_STORAGE_PRESERVED_H_
#define BERTH_STORAGE_PRESERVED_H_

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "storage/store.h"

namespace berth {

class Preserved {
 public:
  // Remembers `fields` (encoded as in the message) for a record, unless they are empty.
  void Keep(RecordKind kind, absl::string_view key, std::string fields) {
    if (!fields.empty()) fields_.insert_or_assign({kind, std::string(key)}, std::move(fields));
  }
  // The bytes to append to the record; empty for nearly all.
  absl::string_view Find(RecordKind kind, const std::string& key) const {
    if (fields_.empty()) return "";
    auto found = fields_.find(std::pair(kind, key));
    return found == fields_.end() ? absl::string_view() : absl::string_view(found->second);
  }
  // The record was deleted.
  void Forget(RecordKind kind, const std::string& key) {
    if (!fields_.empty()) fields_.erase(std::pair(kind, key));
  }
  size_t size() const { return fields_.size(); }

 private:
  absl::flat_hash_map<std::pair<RecordKind, std::string>, std::string> fields_;
};

}  // namespace berth

#endif  // BERTH_STORAGE_PRESERVED_H_
