// Images of OCI layouts, each unpacked once, shared by all tasks that use it, and read-only:
//
//   CACHE/sha256-HEX/   an image, by the digest of its manifest: rootfs/, and image (UnpackedImage)
//   CACHE/used/LINK     ../sha256-HEX: a task uses it. Created here, removed with the task
//   CACHE/new/ old/     being unpacked; being removed
//   CACHE/refs/KEY      the image that Pull.key means (ImageRef), one field a line
//   CACHE/refs/sha256-HEX   the same for a manifest as a registry has it: only the entry
//   CACHE/pulled/       images that are being pulled (registry_pull.h)
//   CACHE/pulled/lock-KEY   held by the process that pulls
//   CACHE/lock          held briefly while entries or links change
//   CACHE/unpacking     held by the process that unpacks or removes: one at a time
//
// An entry appears and disappears by one rename, so it is always complete or absent, whatever is
// killed and whenever the power fails. Anything in new/ and old/ that the holder of `unpacking`
// finds is a leftover. If the cache is too large, unused images are evicted, the least recently
// used first.
#ifndef BERTH_CLIENTS_AGENT_IMAGES_IMAGE_CACHE_H_
#define BERTH_CLIENTS_AGENT_IMAGES_IMAGE_CACHE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "berth/agent/v1/image.pb.h"
#include "clients/agent/images/oci_layout.h"

namespace berth {

// What a name means on this node.
struct ImageRef {
  std::string entry;   // "sha256-HEX", below CACHE
  std::string digest;  // what the registry has under the name, a manifest or an index: "sha256:HEX"
  std::string image;   // the name: "registry.example/team/torch:2.3"
};

// An image that was pulled by this name.
struct CachedImage {
  std::string image, digest;  // as of ImageRef
  int64_t bytes = 0;          // on disk
  bool operator==(const CachedImage&) const = default;
};
// All names, the latest used first. What older versions pulled has none.
std::vector<CachedImage> ListImages(const std::string& cache);

// Handles one request, in a separate process with one thread.
class ImageCache {
 public:
  // `wanted` returns whether the link is still needed; called just before it is created.
  // `progress` is called about once a second while an image is pulled: bytes that are here, of all.
  ImageCache(
      agent::v1::ImageRequest request, std::function<bool()> wanted,
      std::function<void(int64_t, int64_t)> progress = [](int64_t, int64_t) {});

  // Ensures that the image is unpacked and that the request's link points to it. Takes up to the
  // request's timeout, plus the wait for other processes that unpack. SIGTERM ends the wait; an
  // image whose unpacking has started is completed for later tasks.
  absl::Status Provide();
  // Removes leftovers, and unused images until the cache is within its bound.
  absl::Status CleanUp();
  // After Provide of a pull: the digest of what was named; empty: an older version pulled it.
  const std::string& digest() const { return digest_; }

 private:
  absl::StatusOr<bool> UseKnown();
  absl::Status ProvidePulled();
  absl::Status PullAndUnpack();
  absl::StatusOr<bool> UseRef(const std::string& ref);
  absl::Status WriteRef(const std::string& name, const ImageRef& ref) const;
  void RemoveOldPulls() const;
  absl::Status UnpackLayout(const std::string& layout, const std::string& tag, std::string* entry);
  absl::Status MakeDirectories();
  std::string Path(const std::string& name) const { return request_.cache() + "/" + name; }
  absl::StatusOr<bool> Use(const std::string& entry);
  absl::Status Link(const std::string& entry);
  absl::Status RemoveLeftovers();
  absl::Status Unpack(const OciImage& image, const std::string& layout, const std::string& entry);
  absl::Status Fill(const OciImage& image, const std::string& layout);
  absl::Status WriteRecord(const OciImage& image);
  absl::Status Watch();
  absl::Status CheckSize(int64_t bytes, int64_t files) const;
  absl::Status CheckFree() const;
  absl::Status MakeRoom(int64_t bytes);
  absl::Status Publish(const std::string& entry);

  const agent::v1::ImageRequest request_;
  const std::function<bool()> wanted_;
  const std::function<void(int64_t, int64_t)> progress_;
  std::string digest_;
  absl::Time started_, measure_at_;
};

// For an error of Provide: the image itself is wrong, so any node would fail.
bool IsImageError(const absl::Status& status);
// The image did not get the space or time that it needs on this node, or its registry did not
// answer. The node is not at fault, and it may succeed later. Any other error means that the node's
// programs or its disk are broken.
bool IsNobodysFault(const absl::Status& status);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IMAGES_IMAGE_CACHE_H_
