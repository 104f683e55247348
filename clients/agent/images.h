// Tasks in images: the node's store, and what crun is told.
//
// An image is a directory below images.directory, named exactly as the job names it, with its files
// in NAME/rootfs or, without that, in NAME; or an OCI layout there: NAME, or the tag TAG of the
// layout NAME if the job says NAME:TAG. A layout is unpacked into the cache (clients/images) when a
// task is prepared. An image is shared by all tasks and read-only. Inside, a task has /tmp,
// /run/berth/work (where it starts), /run/berth/scratch and /run/berth/hostfile of its own, the
// node's network, its own processes, and the devices that it was given.
#ifndef BERTH_CLIENTS_AGENT_IMAGES_H_
#define BERTH_CLIENTS_AGENT_IMAGES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/agent/environment.h"
#include "clients/agent/task_users.h"

namespace berth {

inline constexpr char kImageWork[] = "/run/berth/work";
inline constexpr char kImageScratch[] = "/run/berth/scratch";
inline constexpr char kImageHostfile[] = "/run/berth/hostfile";

// One of the two.
struct FoundImage {
  std::string rootfs;
  std::string layout, tag;  // an OCI layout, and the tag in it; no tag: the layout's own
};
// INVALID_ARGUMENT for a name that leads elsewhere ("..", "/x"), NOT_FOUND for one that is not
// there. Links are not followed.
absl::StatusOr<FoundImage> FindImage(const std::string& directory, const std::string& name);

// What a task in an image starts from.
struct TaskImage {
  std::string rootfs;
  Environment env;                // of the image itself
  std::string working_directory;  // likewise; empty: none
};
// The image of the cache to which CACHE/used/LINK points. NOT_FOUND if there is no such link.
absl::StatusOr<TaskImage> LinkedImage(const std::string& cache, const std::string& link);

struct Bind {
  std::string source, destination;
  bool writable = false;
};
struct ContainerSpec {
  std::string rootfs;
  std::vector<std::string> argv, env;
  std::string working_directory;
  TaskUser user;
  std::vector<Bind> binds;
  std::string shm = "/dev/shm";  // what is its /dev/shm
};
// config.json of the OCI runtime specification.
std::string ContainerConfig(const ContainerSpec& spec);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IMAGES_H_
