// Keys of usage: combinations of queue, user, account and priority class, and names of device
// models, as small ids. Users choose users and accounts, so the number of combinations is bounded.
#ifndef BERTH_CORE_HISTORY_USAGE_KEYS_H_
#define BERTH_CORE_HISTORY_USAGE_KEYS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/base/fields.h"
#include "core/base/id.h"
#include "core/base/id_map.h"

namespace berth {

using KeyId = Id<struct UsageKeyTag>;
using ModelId = Id<struct DeviceModelTag>;
inline constexpr ModelId kNoModel{0};

// User and account of combinations beyond the bound.
inline constexpr char kOthers[] = "(others)";

struct UsageKey {
  std::string queue;  // the path from below the root: "research/nlp"; "" = the root
  std::string user, account, priority_class;
  bool operator==(const UsageKey&) const = default;
  auto operator<=>(const UsageKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const UsageKey& key) {
    return HashFields(std::move(h), key);
  }
};

class UsageKeys {
 public:
  explicit UsageKeys(size_t most) : most_(most) {}

  // A use of the key. Beyond the bound it is that of the queue's other users.
  KeyId Acquire(UsageKey key);
  // The same for the key of a queue alone, which the bound does not concern.
  KeyId AcquireQueue(std::string queue);
  // The key as it is, whatever the bound.
  KeyId AcquireExactly(UsageKey key);
  void Release(KeyId id);
  // Another use of a key that is in use.
  void Retain(KeyId id) { ++entries_.At(id).uses; }
  const UsageKey& At(KeyId id) const { return entries_.At(id).key; }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    UsageKey key;
    uint64_t uses = 0;
  };
  const size_t most_;
  KeyId next_{1};
  IdMap<KeyId, Entry> entries_;
  absl::flat_hash_map<UsageKey, KeyId> ids_;
};

// There are few, and they stay.
class ModelNames {
 public:
  ModelNames() { Add(""); }
  ModelId Add(absl::string_view name);
  const std::string& At(ModelId id) const { return names_[id.value]; }

 private:
  std::vector<std::string> names_;
  absl::flat_hash_map<std::string, ModelId> ids_;
};

}  // namespace berth

#endif  // BERTH_CORE_HISTORY_USAGE_KEYS_H_
