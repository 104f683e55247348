// Runs skopeo (https://github.com/containers/skopeo), which speaks to registries: TLS, credentials,
// tokens, redirects; it checks each blob against its digest and pulls several at a time.
#ifndef BERTH_CLIENTS_AGENT_IMAGES_SKOPEO_H_
#define BERTH_CLIENTS_AGENT_IMAGES_SKOPEO_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "berth/agent/v1/image.pb.h"

namespace berth {

class Skopeo {
 public:
  // `directory`: for its temporary files; exists. No file above `max_file_bytes` is written.
  Skopeo(std::string program, std::string directory, int64_t max_file_bytes)
      : program_(std::move(program)),
        directory_(std::move(directory)),
        max_file_bytes_(max_file_bytes) {}

  using Watch = std::function<absl::Status()>;
  // The manifest, or the index, that SOURCE has under "PATH:TAG" or "PATH@DIGEST". Errors:
  // NOT_FOUND: no such image. UNAUTHENTICATED: the credentials are missing or refused.
  // UNAVAILABLE: the registry. ABORTED: what it sent is wrong. Messages name the registry.
  absl::StatusOr<std::string> ReadManifest(const agent::v1::RegistrySource& source,
                                           const std::string& name, const Watch& watch) const;
  // Copies the image to the OCI layout `layout`, with tag "image" and with its blobs in `blobs`.
  // Blobs that are there are not pulled again.
  absl::Status Copy(const agent::v1::RegistrySource& source, const std::string& name,
                    const std::string& layout, const std::string& blobs, const Watch& watch) const;

 private:
  const std::string program_, directory_;
  const int64_t max_file_bytes_;
};

inline constexpr char kPulledTag[] = "image";

// What skopeo's message says of an error.
absl::Status SkopeoError(const std::string& host, const std::string& message);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IMAGES_SKOPEO_H_
