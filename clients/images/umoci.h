// Runs umoci (https://umo.ci), which unpacks the layers of an OCI image: it applies whiteouts,
// checks digests, and keeps the names and links of hostile layers inside of the directory.
#ifndef BERTH_CLIENTS_IMAGES_UMOCI_H_
#define BERTH_CLIENTS_IMAGES_UMOCI_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "clients/images/oci_layout.h"

namespace berth {

// DIRECTORY/layout: the image alone, with the blobs of `layout`. Thus umoci need not choose, and
// gets no path with a colon, which it would take for a tag.
absl::Status MakeLayoutOfOne(const OciImage& image, const std::string& layout,
                             const std::string& directory);

// Unpacks DIRECTORY/layout into DIRECTORY/rootfs. `watch` is asked about ten times a second; what
// is not OK ends umoci and is returned. A process of its own, gone when this returns; it dies with
// the caller, and never writes files above `max_file_bytes`.
absl::Status RunUmoci(const std::string& umoci, const std::string& directory,
                      int64_t max_file_bytes, const std::function<absl::Status()>& watch);

}  // namespace berth

#endif  // BERTH_CLIENTS_IMAGES_UMOCI_H_
