#include "clients/authd/node_door.h"

#include <google/protobuf/util/json_util.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "support/dns_name.h"
#include "support/log.h"
#include "support/pki/auth_protocol.h"
#include "support/pki/join_token.h"
#include "support/proto_time.h"

namespace berth {

absl::StatusOr<std::unique_ptr<NodeDoor>> NodeDoor::Open(
    const auth::v1::Nodes& config, std::shared_ptr<const CertificateIssuer> issuer, Admit admit,
    Clock& clock) {
  absl::StatusOr<oidc::ServerCertificate> certificate =
      oidc::ServerCertificate::Open(config.certificate(), config.key());
  if (!certificate.ok()) return certificate.status();
  std::unique_ptr<NodeDoor> door(new NodeDoor(std::make_unique<NodeCertifier>(
      DurationFrom(config.lifetime()), std::move(issuer), std::move(admit), clock)));
  oidc::HttpsServer::Routes routes;
  routes[kNodeCertificatePath] = {
      "POST", [certifier = door->certifier_.get()](const oidc::HttpsCall& call) {
        return certifier->Answer(call);
      }};
  absl::StatusOr<std::unique_ptr<oidc::HttpsServer>> server =
      oidc::HttpsServer::Start(config.listen(), *std::move(certificate), std::move(routes),
                               oidc::HttpsServer::Clients::kMayHaveCertificates);
  if (!server.ok()) return server.status();
  door->server_ = *std::move(server);
  return door;
}

NodeCertifier::NodeCertifier(absl::Duration lifetime,
                             std::shared_ptr<const CertificateIssuer> issuer, Admit admit,
                             Clock& clock)
    : lifetime_(lifetime), issuer_(std::move(issuer)), admit_(std::move(admit)), refusals_(clock) {}

oidc::HttpsReply NodeCertifier::Answer(const oidc::HttpsCall& call) {
  const absl::StatusOr<auth::v1::CertificateAnswer> answer = Certify(call);
  if (answer.ok()) return {200, oidc::JsonOf(*answer)};
  refusals_.Add(answer.status(), call.peer);
  return oidc::RefusalReply(answer.status());
}

absl::StatusOr<v1::AdmitNodeRequest> NodeCertifier::AdmissionFor(
    const auth::v1::NodeOrder& order, const std::string& certificate) const {
  v1::AdmitNodeRequest admission;
  admission.set_node(order.node());
  if (!order.token().empty()) {
    if (absl::Status read = ReadJoinToken(order.token()).status(); !read.ok()) {
      return absl::PermissionDeniedError(read.message());
    }
    admission.set_token(order.token());
    admission.set_request_hash(Sha256(order.request()));
    return admission;
  }
  if (certificate.empty()) {
    return absl::PermissionDeniedError("a node needs a join token, or its certificate to renew it");
  }
  const absl::StatusOr<CertifiedNode> node = issuer_->NodeOf(certificate);
  if (!node.ok()) return node.status();
  if (node->name != order.node()) {
    return absl::PermissionDeniedError(absl::StrCat("the certificate is that of node \"",
                                                    node->name, "\", and renews no other one"));
  }
  admission.set_serial(node->serial);
  return admission;
}

// The certificate is made first, so that a request that gets none takes no use of a token. It
// leaves only once berthd has admitted the node.
absl::StatusOr<auth::v1::CertificateAnswer> NodeCertifier::Certify(
    const oidc::HttpsCall& call) const {
  auth::v1::NodeOrder order;
  // The library's message would contain parts of the token.
  if (!google::protobuf::util::JsonStringToMessage(call.body, &order).ok()) {
    return absl::InvalidArgumentError("the body is not a NodeOrder in JSON");
  }
  if (!IsDnsName(order.node())) return absl::InvalidArgumentError("that is no name of a node");
  const absl::StatusOr<v1::AdmitNodeRequest> admission = AdmissionFor(order, call.certificate);
  if (!admission.ok()) return admission.status();
  absl::StatusOr<IssuedCertificate> issued =
      issuer_->IssueToNode(order.request(), order.node(), lifetime_);
  if (!issued.ok()) return issued.status();
  if (absl::Status admitted = admit_(*admission); !admitted.ok()) return admitted;
  LogInfo("certificate",
          {{"node", order.node()},
           {"by", order.token().empty() ? absl::StrCat("certificate ", admission->serial())
                                        : absl::StrCat("token ", ReadJoinToken(order.token())->id)},
           {"peer", call.peer},
           {"serial", issued->serial},
           {"until", absl::FormatTime(absl::RFC3339_sec, issued->end, absl::UTCTimeZone())}});
  auth::v1::CertificateAnswer answer;
  answer.set_certificate(std::move(issued->pem));
  answer.set_servers(issuer_->servers());
  return answer;
}

}  // namespace berth
