// Names of images in registries, as people and other programs write them.
#ifndef BERTH_CLIENTS_AGENT_IMAGES_REFERENCE_H_
#define BERTH_CLIENTS_AGENT_IMAGES_REFERENCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

struct ImageReference {
  std::string host;    // "registry.example:5000"
  std::string path;    // "team/torch"
  std::string tag;     // "2.3"; empty with a digest
  std::string digest;  // "sha256:HEX"
};

// "HOST[:PORT]/PATH[:TAG][@DIGEST]"; with a digest the tag says nothing. The first part is a host
// if it has a '.' or ':', or is "localhost", as in Docker's names; otherwise the image is in
// `default_host`, at Docker Hub below "library/" if it has one part. Without a tag: "latest".
// INVALID_ARGUMENT: no such name, by the grammar of OCI's distribution specification. NOT_FOUND: it
// names no host, and there is no `default_host`.
absl::StatusOr<ImageReference> ParseImageReference(absl::string_view name,
                                                   const std::string& default_host);

// "sha256:" and 64 hexadecimal digits.
bool IsDigest(absl::string_view digest);

// "HOST/PATH:TAG" or "HOST/PATH@DIGEST".
std::string TextOf(const ImageReference& reference);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IMAGES_REFERENCE_H_
