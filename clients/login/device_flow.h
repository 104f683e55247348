// A person logs in at an OpenID Connect issuer with the browser of any machine (RFC 8628).
#ifndef BERTH_CLIENTS_LOGIN_DEVICE_FLOW_H_
#define BERTH_CLIENTS_LOGIN_DEVICE_FLOW_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "berth/auth/v1/auth.pb.h"
#include "clients/authd_client/ask.h"
#include "clients/cpp/retry.h"

namespace berth {

// What the person has to do.
struct DevicePrompt {
  std::string page;  // https URL, where the code is entered
  std::string code;
  std::string complete_page;  // with the code in it; "" if the issuer has none
  absl::Time end;             // of the code
};

inline constexpr absl::Duration kLongestCode = absl::Minutes(30);

// The ID token. Calls `show` once, then waits until the person has confirmed. Messages begin with
// "the issuer". UNAVAILABLE: it does not answer; PERMISSION_DENIED: it or the person refuses;
// DEADLINE_EXCEEDED: the code has expired.
absl::StatusOr<std::string> TokenByDeviceFlow(const auth::v1::LoginOffer::Issuer& issuer,
                                              const Ask& ask, const ClientEnvironment& environment,
                                              const std::function<void(const DevicePrompt&)>& show);

}  // namespace berth

#endif  // BERTH_CLIENTS_LOGIN_DEVICE_FLOW_H_
