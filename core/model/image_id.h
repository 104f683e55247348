// ImageId: what the scheduler knows of the name of an image. Decisions only ask whether two names
// mean the same, so a hash is enough: 8 bytes for each image of each node, and no table of names
// that must be kept and cleaned.
//
//   "registry.example/team/torch:2.3" -> 0x8f1c...   of a job and of a node alike
//
// Two names with one hash would only cost a worse place: a task that finds no image there pulls it.
#ifndef BERTH_CORE_MODEL_IMAGE_ID_H_
#define BERTH_CORE_MODEL_IMAGE_ID_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "core/model/ids.h"

namespace berth {

// Of the image that a job names: "[HOST/]PATH[:TAG][@DIGEST]". With a digest the tag says nothing;
// without either the tag is "latest". Never 0, unless the name is empty. The same on all machines
// and in all versions: ids are stored.
ImageId ImageIdOf(absl::string_view name);

// Of an image that a node holds, "HOST/PATH:TAG" or "HOST/PATH@DIGEST": of each name that means it
// there. Names without a host are images of `default_host`; empty: of none.
std::vector<ImageId> ImageIdsOf(absl::string_view name, absl::string_view default_host);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_IMAGE_ID_H_
