// Reads OCI image layouts, as written by `skopeo copy docker://... oci:DIRECTORY:TAG`:
//
//   DIRECTORY/oci-layout  index.json  blobs/sha256/HEX
//
//   index.json: tag -> manifest, or an index of manifests by platform -> manifest: configuration
//   and layers
//
// Nothing in a layout is trusted. Every blob is named by the SHA-256 of its content; everything
// read here is small, bounded and checked against its digest. Links are not followed.
#ifndef BERTH_CLIENTS_AGENT_IMAGES_OCI_LAYOUT_H_
#define BERTH_CLIENTS_AGENT_IMAGES_OCI_LAYOUT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "berth/agent/v1/image.pb.h"

namespace berth {

struct OciImage {
  agent::v1::OciDescriptor descriptor;  // of the manifest; its digest names the image
  agent::v1::OciManifest manifest;
  agent::v1::OciConfig config;
};

// The image that `tag` names, for Linux on `architecture` ("amd64"). Names of images are tags
// ("2.3") or end with one ("docker.io/team/torch:2.3"). Without a tag: the only image, or "latest".
// Layers are checked for existence and size, but not read. Errors name the file or the blob.
absl::StatusOr<OciImage> ReadOciImage(const std::string& layout, const std::string& tag,
                                      const std::string& architecture);

// What a registry sent under a name: the digest of the manifest for this platform, if it was an
// index; or else the manifest itself. `what` names it in messages. Docker's types are taken, too.
struct SentManifest {
  std::string digest;  // of the manifest to read next; empty: this is it
  agent::v1::OciManifest manifest;
};
absl::StatusOr<SentManifest> ReadSentManifest(const std::string& text, const std::string& what,
                                              const std::string& architecture);

// Reads all layers. DATA_LOSS names the first one whose content does not match its digest.
absl::Status VerifyLayers(const std::string& layout, const OciImage& image);

// The path of a descriptor's blob. INVALID_ARGUMENT unless the digest is "sha256:" and 64
// lower-case hexadecimal digits.
absl::StatusOr<std::string> BlobPath(const std::string& layout, const std::string& digest);

// This machine's architecture, as OCI names it: "amd64", "arm64".
std::string HostArchitecture();

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IMAGES_OCI_LAYOUT_H_
