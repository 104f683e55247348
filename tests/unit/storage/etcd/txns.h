// Short forms of transactions.
#ifndef BERTH_TESTS_UNIT_STORAGE_ETCD_TXNS_H_
#define BERTH_TESTS_UNIT_STORAGE_ETCD_TXNS_H_

#include <string>
#include <utility>
#include <vector>

#include "storage/etcd/kv.h"

namespace berth::testing {

inline KvOp Get(std::string key, std::string end = "", int64_t limit = 0) {
  return {.kind = KvOp::Kind::kGet, .key = std::move(key), .end = std::move(end), .limit = limit};
}
inline KvOp Put(std::string key, std::string value) {
  return {.kind = KvOp::Kind::kPut, .key = std::move(key), .value = std::move(value)};
}
inline KvOp Delete(std::string key, std::string end = "") {
  return {.kind = KvOp::Kind::kDelete, .key = std::move(key), .end = std::move(end)};
}
inline KvTxn Do(std::vector<KvOp> ops) { return {.compares = {}, .then = std::move(ops)}; }
inline KvTxn Stale(std::vector<KvOp> ops) {
  return {.compares = {}, .then = std::move(ops), .stale = true};
}
inline KvCompare Created(std::string key, int64_t revision) {
  return {std::move(key), KvCompare::Field::kCreateRevision, revision};
}
inline KvCompare Modified(std::string key, int64_t revision) {
  return {std::move(key), KvCompare::Field::kModRevision, revision};
}

// "a=1 b=2" for each operation.
inline std::vector<std::string> Shown(const KvResult& result) {
  std::vector<std::string> shown;
  for (const std::vector<KvItem>& items : result.items) {
    std::string& text = shown.emplace_back();
    for (const KvItem& item : items) {
      text += (text.empty() ? "" : " ") + item.key + "=" + item.value;
    }
  }
  return shown;
}
using Texts = std::vector<std::string>;

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_STORAGE_ETCD_TXNS_H_
