// Who a client is: from its certificate, which TLS has verified, and the configuration. Pure.
#ifndef BERTH_SERVER_ACCESS_CALLER_H_
#define BERTH_SERVER_ACCESS_CALLER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "berth/config/v1/config.pb.h"
#include "core/access/access.h"
#include "core/access/actor.h"
#include "core/model/ids.h"

namespace berth {

struct CertificateNames;

// How a caller proved who it is.
enum class Proof : uint8_t { kNone, kLocal, kIdentity, kRule, kCommonName };
absl::string_view NameOf(Proof proof);  // for people

// The task for which an agent calls.
struct CallingTask {
  TaskKey key;
  uint32_t attempt = 0;
  NodeId node;
  // Of the agent's registration. 0: it was checked when the stream began, and may be over.
  uint64_t epoch = 0;
  Principal agent;  // as which it connected, which may be that of a user
};

struct Caller {
  Principal principal;      // without a name: nobody
  std::string why_unknown;  // then the reason, for people
  Proof proof = Proof::kNone;
  bool administrator = false;  // by the configuration: may do everything
  bool by_identity = false;    // the certificate has identities of Berth's form
  bool of_users = false;       // the authority of users signed it: no agent, and no common name
  bool of_nodes = false;       // the authority of nodes signed it: no user, and no common name
  bool tls = false;            // with a certificate of the authority
  std::string common_name;     // of the certificate; empty if it has none, or several
  std::string serial;          // of the certificate
  absl::Time expires = absl::InfiniteFuture();  // the certificate
  // The call is for this task: the principal is the node, which has no rights of its own.
  std::optional<CallingTask> task = std::nullopt;
  absl::Status refused = absl::OkStatus();  // why no call of it is admitted
};

inline constexpr char kDefaultTrustDomain[] = "berth";

// `access` is completed. `of_users`: access.user_authorities has signed the certificate;
// `of_nodes`: access.node_authorities has.
Caller CallerWithoutTls(const config::v1::Access& access);
Caller CallerFrom(const config::v1::Access& access, const CertificateNames& certificate,
                  bool of_users, bool of_nodes = false);

bool IsAdministrator(const config::v1::Administrators& administrators, const Principal& principal);

// For the log and the audit; the caller adds the method and the request id. `address`: of the peer.
Actor ActorOf(const Caller& caller, absl::string_view address);

// Whether the caller may connect as the agent of this node. PERMISSION_DENIED: its identity is that
// of a user, or of another node. Certificates without an identity may be those of agents, unless
// `identities` are required (access.node_identities).
absl::Status MayBeAgentOf(const Caller& caller, absl::string_view node, bool identities);

// The user in quotes, or "a certificate without ..." and the like.
std::string TextOf(const Caller& caller);

}  // namespace berth

#endif  // BERTH_SERVER_ACCESS_CALLER_H_
