#include "server/services/audit_service.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "server/commands/request_table.h"
#include "server/services/paging.h"
#include "server/services/reply.h"
#include "server/validation/findings.h"
#include "server/validation/series.h"
#include "server/validation/text.h"
#include "server/validation/values.h"
#include "support/proto_time.h"

namespace berth {
namespace {

constexpr size_t kMaxPageBytes = size_t{1} << 20;  // then the page ends

absl::Status ValidateListAudit(const v1::ListAuditRequest& request) {
  Findings findings;
  const FieldPath root;
  if (request.has_since()) CheckTimestamp({root, "since"}, request.since(), findings);
  if (request.has_until()) CheckTimestamp({root, "until"}, request.until(), findings);
  if (!request.actor().empty() && !IsAccessName(request.actor())) {
    findings.Invalid({root, "actor"}, "is not the name of a user or a node");
  }
  if (!request.job().empty()) CheckJobReference({root, "job"}, request.job(), findings);
  return findings.ToStatus();
}

AuditFilter FilterOf(const v1::ListAuditRequest& request) {
  AuditFilter filter{.actor = request.actor(), .job = request.job()};
  if (request.has_since()) filter.since = TimeFrom(request.since());
  if (request.has_until()) filter.until = TimeFrom(request.until());
  return filter;
}

// Pages of one filter belong together.
std::string AuditScope(v1::ListAuditRequest request) {
  request.clear_page_size();
  request.clear_page_token();
  return FingerprintOf("audit", request);
}

absl::Status ListAuditIn(AuditChain& chain, const v1::ListAuditRequest& request,
                         v1::ListAuditResponse& response) {
  const std::string scope = AuditScope(request);
  const absl::StatusOr<Page> page = ReadPage(request.page_size(), request.page_token(), scope);
  if (!page.ok()) return page.status();
  const AuditFilter filter = FilterOf(request);
  size_t examined = 0, bytes = 0;
  uint64_t after = PageKeyId(page->after);
  bool more = false;
  const absl::Status read = chain.Read(after, filter.since, [&](v1::AuditEntry entry) {
    const bool full = response.entries_size() == page->size || bytes >= kMaxPageBytes ||
                      examined == kMaxRowsPerCall;
    if (full) {
      more = true;
      return false;
    }
    ++examined;
    after = entry.sequence();
    if (Matches(filter, entry)) {
      bytes += entry.ByteSizeLong();
      *response.add_entries() = std::move(entry);
    }
    return true;
  });
  if (more) response.set_next_page_token(PageToken(PageKey(after), scope));
  return read;
}

absl::Status VerifyAuditIn(AuditChain& chain, v1::VerifyAuditResponse& response) {
  const absl::StatusOr<ChainSummary> found = chain.Verify();
  if (absl::IsDataLoss(found.status())) {
    response.set_broken(std::string(found.status().message()));
    return absl::OkStatus();
  }
  if (!found.ok()) return found.status();
  response.set_first_sequence(found->first);
  response.set_last_sequence(found->last);
  response.set_entries(found->entries);
  response.set_head_hash(absl::BytesToHexString(ChainHashBytes(found->head)));
  return absl::OkStatus();
}

}  // namespace

// Entries follow from what is durable, so the answer need not wait for the disk.
grpc::ServerUnaryReactor* AuditService::ListAudit(grpc::CallbackServerContext* context,
                                                  const v1::ListAuditRequest* request,
                                                  v1::ListAuditResponse* response) {
  auto reply = std::make_shared<Reply<v1::ListAuditResponse>>(context, response);
  grpc::ServerUnaryReactor* reactor = reply->reactor();
  const Call call = context_.CallOf(Rpc::kAuditServiceListAudit, *context);
  if (!Enter(context_, call, *reply)) return reactor;
  if (absl::Status status = AdmitNow(context_, call); !status.ok()) {
    reply->Finish(status);
    return reactor;
  }
  if (absl::Status status = ValidateListAudit(*request); !status.ok()) {
    reply->Finish(status);
    return reactor;
  }
  audit_->Ask(request->refused(), [request, reply](AuditChain& chain) {
    reply->Finish(ListAuditIn(chain, *request, reply->response()));
  });
  return reactor;
}

grpc::ServerUnaryReactor* AuditService::VerifyAudit(grpc::CallbackServerContext* context,
                                                    const v1::VerifyAuditRequest* request,
                                                    v1::VerifyAuditResponse* response) {
  auto reply = std::make_shared<Reply<v1::VerifyAuditResponse>>(context, response);
  grpc::ServerUnaryReactor* reactor = reply->reactor();
  const Call call = context_.CallOf(Rpc::kAuditServiceVerifyAudit, *context);
  if (!Enter(context_, call, *reply)) return reactor;
  if (absl::Status status = AdmitNow(context_, call); !status.ok()) {
    reply->Finish(status);
    return reactor;
  }
  audit_->Ask(request->refused(), [reply](AuditChain& chain) {
    reply->Finish(VerifyAuditIn(chain, reply->response()));
  });
  return reactor;
}

}  // namespace berth
