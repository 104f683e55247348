// The configuration of berth-web (proto/berth/web/v1/web.proto).
#ifndef BERTH_CLIENTS_WEB_WEB_CONFIG_H_
#define BERTH_CLIENTS_WEB_WEB_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "berth/web/v1/web.pb.h"

namespace berth::web {

inline constexpr char kDefaultWebListen[] = "127.0.0.1:7072";

// Fills in the defaults. INVALID_ARGUMENT with the fields that are wrong.
absl::Status CompleteWebConfig(v1::Web* config);

// Without it, everybody who reaches the page is the user that berthd's configuration names.
inline bool HasSignIn(const v1::Web& config) { return !config.ca().empty(); }

// As browsers write them; the first one is where issuers send people back to.
std::vector<std::string> OriginsOf(const v1::Web& config);

}  // namespace berth::web

#endif  // BERTH_CLIENTS_WEB_WEB_CONFIG_H_
