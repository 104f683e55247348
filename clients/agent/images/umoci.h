// Runs umoci (https://umo.ci), which unpacks the layers of an OCI image: it applies whiteouts,
// checks digests, and confines the names and links of hostile layers to the directory.
#ifndef BERTH_CLIENTS_AGENT_IMAGES_UMOCI_H_
#define BERTH_CLIENTS_AGENT_IMAGES_UMOCI_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "clients/agent/images/oci_layout.h"

namespace berth {

// DIRECTORY/layout: a layout with only this image, using the blobs of `layout`. So umoci has no
// choice to make, and its path has no colon, which it would parse as a tag.
absl::Status MakeSingleLayout(const OciImage& image, const std::string& layout,
                              const std::string& directory);

// Unpacks DIRECTORY/layout into DIRECTORY/rootfs. `watch` is called about ten times a second; if it
// returns an error, umoci is killed and the error is returned. umoci runs in a child process that
// has ended when this returns, dies with the caller, and never writes files above `max_file_bytes`.
absl::Status RunUmoci(const std::string& umoci, const std::string& directory,
                      int64_t max_file_bytes, const std::function<absl::Status()>& watch);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IMAGES_UMOCI_H_
