#include "storage/etcd/etcd_messages.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace berth {
namespace {

namespace pb = etcdserverpb;

void SetOp(const KvOp& op, bool stale, pb::RequestOp* out) {
  switch (op.kind) {
    case KvOp::Kind::kGet: {
      pb::RangeRequest* range = out->mutable_request_range();
      range->set_key(op.key);
      range->set_range_end(op.end);
      range->set_limit(op.limit);
      range->set_serializable(stale);
      return;
    }
    case KvOp::Kind::kPut:
      out->mutable_request_put()->set_key(op.key);
      out->mutable_request_put()->set_value(op.value);
      return;
    case KvOp::Kind::kDelete:
      out->mutable_request_delete_range()->set_key(op.key);
      out->mutable_request_delete_range()->set_range_end(op.end);
      return;
  }
}

absl::Status NotValid(absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat("this is not an etcd: its answer ", what));
}

// Items of one kGet: within its range and limit, in order.
absl::StatusOr<std::vector<KvItem>> ItemsFrom(const KvOp& op, pb::RangeResponse& range) {
  if (op.limit != 0 && range.kvs_size() > op.limit) return NotValid("exceeds the limit of a get");
  std::vector<KvItem> items;
  items.reserve(static_cast<size_t>(range.kvs_size()));
  for (pb::KeyValue& item : *range.mutable_kvs()) {
    const std::string& key = item.key();
    const bool asked = op.end.empty() ? key == op.key : key >= op.key && key < op.end;
    if (!asked || (!items.empty() && key <= items.back().key)) {
      return NotValid("has keys that were not asked for");
    }
    if (item.create_revision() <= 0 || item.mod_revision() < item.create_revision()) {
      return NotValid("has a key without revisions");
    }
    items.push_back({.key = std::move(*item.mutable_key()),
                     .value = std::move(*item.mutable_value()),
                     .create_revision = item.create_revision(),
                     .mod_revision = item.mod_revision()});
  }
  return items;
}

bool Fits(const KvOp& op, const pb::ResponseOp& response) {
  switch (op.kind) {
    case KvOp::Kind::kGet:
      return response.has_response_range();
    case KvOp::Kind::kPut:
      return response.has_response_put();
    case KvOp::Kind::kDelete:
      return response.has_response_delete_range();
  }
  return false;
}

}  // namespace

pb::TxnRequest EtcdRequest(const KvTxn& txn) {
  pb::TxnRequest request;
  for (const KvCompare& compare : txn.compares) {
    pb::Compare* out = request.add_compare();
    out->set_key(compare.key);
    if (compare.field == KvCompare::Field::kCreateRevision) {
      out->set_target(pb::Compare::CREATE);
      out->set_create_revision(compare.revision);
    } else {
      out->set_target(pb::Compare::MOD);
      out->set_mod_revision(compare.revision);
    }
  }
  for (const KvOp& op : txn.then) SetOp(op, txn.stale, request.add_success());
  for (const KvOp& op : txn.otherwise) SetOp(op, txn.stale, request.add_failure());
  return request;
}

absl::StatusOr<KvResult> ResultFrom(const KvTxn& txn, pb::TxnResponse& response) {
  KvResult result{.held = response.succeeded(), .revision = response.header().revision()};
  const std::vector<KvOp>& ops = result.held ? txn.then : txn.otherwise;
  if (ops.size() != static_cast<size_t>(response.responses_size())) {
    return NotValid("has another number of results than operations");
  }
  for (size_t i = 0; i < ops.size(); ++i) {
    pb::ResponseOp& op = *response.mutable_responses(static_cast<int>(i));
    if (!Fits(ops[i], op)) return NotValid("has the result of another operation");
    std::vector<KvItem>& items = result.items.emplace_back();
    if (ops[i].kind != KvOp::Kind::kGet) continue;
    absl::StatusOr<std::vector<KvItem>> found = ItemsFrom(ops[i], *op.mutable_response_range());
    if (!found.ok()) return found.status();
    items = *std::move(found);
  }
  return result;
}

absl::Status StatusFromEtcd(const grpc::Status& status, const std::string& endpoint) {
  if (status.ok()) return absl::OkStatus();
  const std::string text = absl::StrCat("etcd at ", endpoint, ": ", status.error_message());
  switch (status.error_code()) {
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      if (absl::StrContains(text, "space exceeded")) return absl::ResourceExhaustedError(text);
      if (absl::StrContains(text, "too many requests")) return absl::UnavailableError(text);
      return absl::InvalidArgumentError(text);
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::OUT_OF_RANGE:
      return absl::InvalidArgumentError(text);
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return absl::PermissionDeniedError(text);
    case grpc::StatusCode::UNIMPLEMENTED:
      return absl::FailedPreconditionError(text);
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return absl::DeadlineExceededError(text);
    default:
      return absl::UnavailableError(text);
  }
}

bool IsNoAnswer(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace berth
