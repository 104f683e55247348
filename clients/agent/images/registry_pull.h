// Pulls one image from a registry or one of its mirrors into an OCI layout:
//
//   CACHE/pulled/KEY/    the layout: one image, tag "image"; also the temporary files of skopeo
//   CACHE/pulled/blobs/  layers of all images that are being pulled; whole ones stay if a pull is
//                        interrupted, and the next one goes on from there
#ifndef BERTH_CLIENTS_AGENT_IMAGES_REGISTRY_PULL_H_
#define BERTH_CLIENTS_AGENT_IMAGES_REGISTRY_PULL_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "berth/agent/v1/image.pb.h"
#include "clients/agent/images/skopeo.h"

namespace berth {

class RegistryPull {
 public:
  struct Hooks {
    std::function<absl::Status()> check_free;  // an error ends the pull
    // So many bytes of so many are here.
    std::function<void(int64_t bytes, int64_t of)> progress;
  };
  RegistryPull(const agent::v1::ImageRequest& request, Hooks hooks);

  // Asks the sources, one after the other, which manifest the name means. Errors as Skopeo's; that
  // of the last source, if none knows it.
  absl::Status Resolve();
  // After Resolve: "sha256:HEX" of the manifest for this machine, as the registry has it.
  const std::string& digest() const { return digest_; }
  // After Resolve: of what the registry has under the name itself: that manifest, or an index.
  const std::string& named_digest() const { return named_digest_; }
  // After Resolve: pulls the image. Also DEADLINE_EXCEEDED: it took too long. UNAVAILABLE: nothing
  // came for too long. OUT_OF_RANGE: it is larger than an image may be.
  absl::Status Copy();
  const std::string& layout() const { return layout_; }
  // Removes the layout, but not the blobs.
  void RemoveLayout() const;
  // Removes its layers, which are damaged.
  void RemoveBlobs() const;

 private:
  absl::Status ResolveAt(const agent::v1::RegistrySource& source);
  absl::Status TakeLayers(const agent::v1::OciManifest& manifest, const std::string& what);
  absl::Status Watch();
  int64_t Here() const;
  void RemoveParts() const;

  const agent::v1::ImageRequest& request_;
  const agent::v1::Pull& pull_;
  const Hooks hooks_;
  const std::string blobs_, layout_;
  const Skopeo skopeo_;
  const absl::Time began_;
  const agent::v1::RegistrySource* source_ = nullptr;  // that knows the image
  std::string digest_, named_digest_;
  std::vector<std::string> layers_;  // paths of their files
  int64_t total_bytes_ = 0;
  absl::Time moved_, told_;  // when bytes came; when the progress was told
  int64_t here_ = 0;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IMAGES_REGISTRY_PULL_H_
