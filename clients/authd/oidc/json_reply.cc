#include "clients/authd/oidc/json_reply.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "berth/auth/v1/auth.pb.h"
#include "support/log.h"

namespace berth::oidc {

std::string JsonOf(const google::protobuf::Message& message) {
  std::string json;
  // Cannot fail: messages of texts in UTF-8.
  if (!google::protobuf::util::MessageToJsonString(message, &json).ok()) return "{}\n";
  return absl::StrCat(json, "\n");
}

HttpsReply RefusalReply(const absl::Status& status) {
  auth::v1::CertificateAnswer answer;
  answer.set_error(std::string(status.message()));
  answer.set_retry(absl::IsUnavailable(status));
  const int code = absl::IsUnavailable(status) ? 503 : absl::IsPermissionDenied(status) ? 403 : 400;
  return {code, JsonOf(answer)};
}

void RefusalLog::Add(const absl::Status& status, const std::string& peer) {
  absl::MutexLock lock(&mutex_);
  if (clock_.Steady() - minute_ >= absl::Minutes(1)) {
    if (count_ > kLoggedRefusals) {
      LogWarn("further refusals", {{"count", count_ - kLoggedRefusals}});
    }
    minute_ = clock_.Steady();
    count_ = 0;
  }
  if (++count_ <= kLoggedRefusals) LogWarn("no certificate", {{"peer", peer}, {"error", status}});
}

}  // namespace berth::oidc
