#include "clients/authd/admission.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/cpp/client.h"
#include "support/tls.h"

namespace berth {
namespace {

// Errors for which neither the node nor its token is to blame.
absl::Status ForNode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnavailable:
      return status;
    default:
      return absl::UnavailableError(absl::StrCat("berthd: ", status.message()));
  }
}

}  // namespace

absl::StatusOr<Admit> AdmitByBerthd(const auth::v1::Nodes& config) {
  const TlsFiles files{.certificate = config.tls().certificate(),
                       .key = config.tls().key(),
                       .ca = config.tls().ca()};
  const auto credentials = MakeLastingChannelCredentials(files);
  if (!credentials.ok()) return credentials.status();
  const ClientOptions options{
      .server = config.server(), .tls = files, .timeout = kAdmissionPatience};
  return Admit([options](const v1::AdmitNodeRequest& request) -> absl::Status {
    const auto client = Client::Connect(options);
    if (!client.ok()) return absl::UnavailableError(client.status().message());
    const absl::Time end = absl::Now() + kAdmissionPatience;
    return ForNode((*client)->CallOnce([&](grpc::ClientContext* context) {
      context->set_deadline(absl::ToChronoTime(end));
      v1::AdmitNodeResponse response;
      return (*client)->stub<v1::NodeService>().AdmitNode(context, request, &response);
    }));
  });
}

}  // namespace berth
