// Tasks in images: the node's store of unpacked root file systems, and what crun is told.
//
// An image is a directory below images.directory, named exactly as the job names it; its files are
// in NAME/rootfs or, without that, in NAME. It is shared by all tasks and read-only. Inside, a task
// has /tmp, /run/berth/work (where it starts), /run/berth/scratch and /run/berth/hostfile of its
// own, the node's network, its own processes, and the devices that it was given.
#ifndef BERTH_CLIENTS_AGENT_IMAGES_H_
#define BERTH_CLIENTS_AGENT_IMAGES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/agent/task_users.h"

namespace berth {

inline constexpr char kImageWork[] = "/run/berth/work";
inline constexpr char kImageScratch[] = "/run/berth/scratch";
inline constexpr char kImageHostfile[] = "/run/berth/hostfile";

// The image's root file system. INVALID_ARGUMENT for a name that leads elsewhere ("..", "/x"),
// NOT_FOUND for one that is not there, and for an image layout that nobody has unpacked. Links are
// not followed.
absl::StatusOr<std::string> FindImage(const std::string& directory, const std::string& name);

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
};
// config.json of the OCI runtime specification.
std::string ContainerConfig(const ContainerSpec& spec);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IMAGES_H_
