// The configuration of berth-authd (proto/berth/auth/v1).
#ifndef BERTH_CLIENTS_AUTHD_AUTHD_CONFIG_H_
#define BERTH_CLIENTS_AUTHD_AUTHD_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "berth/auth/v1/auth.pb.h"

namespace berth {

inline constexpr char kNoSocket[] = "off";

// Fills in the defaults. INVALID_ARGUMENT with the fields that are wrong.
absl::Status CompleteAuthdConfig(auth::v1::Authd* config);

// The limits of a certificate's lifetime.
bool IsCertificateLifetime(absl::Duration lifetime);
inline constexpr char kCertificateLifetimes[] = "must be 5m..168h";

// False: only agents get certificates here. The authority of users is not needed then.
bool HasDoorForUsers(const auth::v1::Authd& config);

// The limits of a node's certificate's lifetime.
inline constexpr absl::Duration kNodeCertificateLifetime = absl::Hours(24);
inline constexpr absl::Duration kShortestNodeLifetime = absl::Minutes(1);
inline constexpr absl::Duration kLongestNodeLifetime = absl::Hours(168);

// Fills in the defaults of the section `nodes`, and adds its problems, "FIELD: PROBLEM".
void CompleteNodesConfig(auth::v1::Authd* config, std::vector<std::string>* problems);

// Fills in the defaults of the section `oidc`, and adds its problems, "FIELD: PROBLEM".
void CompleteOidcConfig(auth::v1::Authd* config, std::vector<std::string>* problems);

}  // namespace berth

#endif  // BERTH_CLIENTS_AUTHD_AUTHD_CONFIG_H_
