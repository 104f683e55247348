#include "clients/authd/admission.h"

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "berth/v1/node.grpc.pb.h"
#include "support/errors.h"
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
  const std::shared_ptr<v1::NodeService::Stub> stub =
      v1::NodeService::NewStub(grpc::CreateChannel(config.server(), *credentials));
  return Admit([stub](const v1::AdmitNodeRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kAdmissionPatience));
    v1::AdmitNodeResponse response;
    return ForNode(FromGrpcStatus(stub->AdmitNode(&context, request, &response)));
  });
}

}  // namespace berth
