// The server's configuration: a berth.config.v1.Server, read from strict YAML. All defaults are
// filled in and all values checked here, so that the rest of the server just reads fields.
#ifndef BERTH_SERVER_CONFIG_CONFIG_H_
#define BERTH_SERVER_CONFIG_CONFIG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "berth/config/v1/config.pb.h"
#include "support/config_file.h"
#include "support/tls.h"

namespace berth {

inline constexpr char kDefaultListen[] = "127.0.0.1:7070";
inline constexpr char kDefaultHttpListen[] = "127.0.0.1:7071";
inline constexpr char kDefaultDataDirectory[] = "/var/lib/berth";
inline constexpr char kNoHttp[] = "off";

// Reads the file; an empty path gives an empty configuration. The result is not completed yet,
// because command line flags are applied in between. INVALID_ARGUMENT for a missing or invalid
// file. `places`, if given, is filled for Located.
absl::StatusOr<config::v1::Server> ReadConfig(const std::string& path,
                                              ConfigPlaces* places = nullptr);

// Fills in defaults, then checks. INVALID_ARGUMENT with every violation.
absl::Status CompleteConfig(config::v1::Server& config);

TlsFiles TlsFilesOf(const config::v1::Tls& tls);

}  // namespace berth

#endif  // BERTH_SERVER_CONFIG_CONFIG_H_
