#include "storage/etcd/kv.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace berth {
namespace {

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("etcd: a transaction ", what));
}

absl::Status Check(const KvOp& op) {
  if (op.key.empty()) return Bad("has an operation without a key");
  if (op.kind != KvOp::Kind::kPut && !op.end.empty() && op.end <= op.key) {
    return Bad("has a range that ends before it begins");
  }
  if (op.value.size() > kMaxKvValue) {
    return Bad(absl::StrCat("puts a value of ", op.value.size(), " bytes; at most ", kMaxKvValue));
  }
  return op.limit < 0 ? Bad("has a negative limit") : absl::OkStatus();
}

absl::Status CheckCount(size_t count, absl::string_view what) {
  if (count <= kMaxKvOps) return absl::OkStatus();
  return Bad(absl::StrCat("has ", count, " ", what, "; at most ", kMaxKvOps));
}

}  // namespace

bool WritesNothing(const KvTxn& txn) {
  const auto reads = [](const KvOp& op) { return op.kind == KvOp::Kind::kGet; };
  return std::all_of(txn.then.begin(), txn.then.end(), reads) &&
         std::all_of(txn.otherwise.begin(), txn.otherwise.end(), reads);
}

absl::Status CheckTxn(const KvTxn& txn) {
  // etcd answers one without operations from a member that may be behind.
  if (txn.then.empty() && txn.otherwise.empty()) return Bad("has no operation");
  if (txn.stale && !WritesNothing(txn)) return Bad("that writes cannot be stale");
  absl::Status status = CheckCount(txn.compares.size(), "compares");
  status.Update(CheckCount(txn.then.size(), "operations"));
  status.Update(CheckCount(txn.otherwise.size(), "operations"));
  for (const KvCompare& compare : txn.compares) {
    if (compare.key.empty()) status.Update(Bad("has a compare without a key"));
    if (compare.revision < 0) status.Update(Bad("compares with a negative revision"));
  }
  for (const KvOp& op : txn.then) status.Update(Check(op));
  for (const KvOp& op : txn.otherwise) status.Update(Check(op));
  return status;
}

}  // namespace berth
