// NodeDoor: certificates over HTTPS, for the agents of nodes (proto/berth/auth/v1).
//
//   agent --NodeOrder {node, token, request}--> here --AdmitNode--> berthd: takes a use of the
//   token
//         <--certificate of spiffe://TRUST-DOMAIN/node/NODE--
//   ... and later, with that certificate as the one of the TLS client, without a token.
#ifndef BERTH_CLIENTS_AUTHD_NODE_DOOR_H_
#define BERTH_CLIENTS_AUTHD_NODE_DOOR_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "berth/auth/v1/auth.pb.h"
#include "clients/authd/admission.h"
#include "clients/authd/issuing.h"
#include "clients/authd/oidc/https_server.h"
#include "clients/authd/oidc/json_reply.h"
#include "support/clock.h"

namespace berth {

// What the door answers. Thread-safe.
class NodeCertifier {
 public:
  // `issuer` is the authority of nodes; `clock` must outlive this.
  NodeCertifier(absl::Duration lifetime, std::shared_ptr<const CertificateIssuer> issuer,
                Admit admit, Clock& clock);

  oidc::HttpsReply Answer(const oidc::HttpsCall& call);

 private:
  absl::StatusOr<auth::v1::CertificateAnswer> Certify(const oidc::HttpsCall& call) const;
  // What berthd is asked. PERMISSION_DENIED: the node has proved nothing.
  absl::StatusOr<v1::AdmitNodeRequest> AdmissionFor(const auth::v1::NodeOrder& order,
                                                    const std::string& certificate) const;

  const absl::Duration lifetime_;
  const std::shared_ptr<const CertificateIssuer> issuer_;
  const Admit admit_;
  oidc::RefusalLog refusals_;
};

class NodeDoor {
 public:
  // Listens. `config` is completed (authd_config.h). INVALID_ARGUMENT: a file; UNAVAILABLE: the
  // address.
  static absl::StatusOr<std::unique_ptr<NodeDoor>> Open(
      const auth::v1::Nodes& config, std::shared_ptr<const CertificateIssuer> issuer, Admit admit,
      Clock& clock);

 private:
  explicit NodeDoor(std::unique_ptr<NodeCertifier> certifier) : certifier_(std::move(certifier)) {}

  const std::unique_ptr<NodeCertifier> certifier_;
  std::unique_ptr<oidc::HttpsServer> server_;  // last: its threads use the other
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AUTHD_NODE_DOOR_H_
