// Images of OCI layouts, unpacked once each, shared by all tasks that use them, never written:
//
//   CACHE/sha256-HEX/   an image, by the digest of its manifest: rootfs/, and image (UnpackedImage)
//   CACHE/used/LINK     ../sha256-HEX: a task uses it. Made here, removed with the task
//   CACHE/new/ old/     being unpacked; being removed
//   CACHE/lock          held for moments, while entries or links change
//   CACHE/unpacking     held by who unpacks or removes: one at a time
//
// An entry comes and goes by one rename, so that it is there wholly or not, whatever is killed and
// whenever the power fails; what is found in new/ and old/ by who holds `unpacking` is a leftover.
// When there is too much, what no task uses goes, the longest unused first.
#ifndef BERTH_CLIENTS_IMAGES_IMAGE_CACHE_H_
#define BERTH_CLIENTS_IMAGES_IMAGE_CACHE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "berth/agent/v1/image.pb.h"
#include "clients/images/oci_layout.h"

namespace berth {

// For one request, in a process of its own with one thread.
class ImageCache {
 public:
  // `wanted`: whether anybody still wants the link; asked just before it is made.
  ImageCache(agent::v1::ImageRequest request, std::function<bool()> wanted);

  // Sees to it that the image is unpacked and that the link of the request points to it. May take
  // as long as the request says, and waits for others who unpack. SIGTERM ends the waiting; an
  // image that is being unpacked already is unpacked to the end, for those who come later.
  absl::Status Provide();
  // Removes leftovers, and images above the bound.
  absl::Status CleanUp();

 private:
  absl::Status MakeDirectories();
  std::string Path(const std::string& name) const { return request_.cache() + "/" + name; }
  absl::StatusOr<bool> Use(const std::string& entry);
  absl::Status Link(const std::string& entry);
  absl::Status RemoveLeftovers();
  absl::Status Unpack(const OciImage& image, const std::string& entry);
  absl::Status Fill(const OciImage& image);
  absl::Status WriteRecord(const OciImage& image);
  absl::Status Watch();
  absl::Status CheckSize(int64_t bytes, int64_t files) const;
  absl::Status CheckFree() const;
  absl::Status MakeRoom(int64_t bytes);
  absl::Status Publish(const std::string& entry);

  const agent::v1::ImageRequest request_;
  const std::function<bool()> wanted_;
  absl::Time started_, measure_at_;
};

// Of an error of Provide. The image itself is what is wrong: any node would say so.
bool IsImagesFault(const absl::Status& status);
// The image did not get the room or the time that it needs here: that may be much, and says nothing
// against the node. Else the node's programs or its disk are broken.
bool IsTooLarge(const absl::Status& status);

}  // namespace berth

#endif  // BERTH_CLIENTS_IMAGES_IMAGE_CACHE_H_
