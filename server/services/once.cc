#include "server/services/once.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/validation/text.h"
#include "support/request_id.h"

namespace berth {
namespace {

// Apart from the ids of requests' own fields, and from those of other callers.
std::string KeyOf(const Call& call) {
  return absl::StrCat(std::string(1, '\0'), call.caller->principal.name, std::string(1, '\0'),
                      call.once_id);
}

std::string FingerprintOf(const Call& call) {
  return absl::StrCat(NameOf(call.rpc), " ", call.target);
}

}  // namespace

void TakeRequestId(const grpc::ServerContextBase& context, Call* call) {
  if (call->rpc == Rpc::kNodeServiceCreateJoinToken) return;
  const auto found = context.client_metadata().find(kRequestIdMetadata);
  if (found == context.client_metadata().end()) return;
  call->once_id.assign(found->second.data(), found->second.size());
  if (call->once_id.size() <= kMaxRequestIdBytes) call->request_id = call->once_id;
}

absl::Status DoOnce(Turn& turn, RequestTable& requests, const Call& call,
                    google::protobuf::Message& response, absl::FunctionRef<absl::Status()> change) {
  if (call.once_id.empty()) return change();
  if (call.once_id.size() > kMaxRequestIdBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(kRequestIdMetadata, ": at most ", kMaxRequestIdBytes, " bytes"));
  }
  std::string key = KeyOf(call);
  std::string fingerprint = FingerprintOf(call);
  const absl::StatusOr<const std::string*> known = requests.Find(key, fingerprint, turn.now());
  if (!known.ok()) {
    return absl::AlreadyExistsError(absl::StrCat(kRequestIdMetadata, " ", Quoted(call.once_id),
                                                 " was used for another call; choose a new id"));
  }
  if (*known != nullptr) {
    response.ParseFromString(**known);
    return absl::OkStatus();
  }
  absl::Status status = change();
  if (!status.ok() || response.ByteSizeLong() > kMaxKeptAnswer) return status;
  requests.Remember(
      turn, {std::move(key), std::move(fingerprint), turn.now(), response.SerializeAsString()});
  return status;
}

}  // namespace berth
