// The user that an image names, by the image's own files.
#ifndef BERTH_CLIENTS_AGENT_IMAGES_IMAGE_USER_H_
#define BERTH_CLIENTS_AGENT_IMAGES_IMAGE_USER_H_

#include <string>

#include "berth/agent/v1/image.pb.h"

namespace berth {

// Sets user, uid, gid and home of the record from "USER", "UID", "USER:GROUP" and so on, by
// /etc/passwd and /etc/group below `rootfs`, as other runtimes do. Nothing for root, for a name
// that the image does not have, and for a number that is none.
void SetImageUser(const std::string& user, const std::string& rootfs,
                  agent::v1::UnpackedImage* record);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IMAGES_IMAGE_USER_H_
