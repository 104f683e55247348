// Tasks in images: the node's image store, and the configuration of crun.
//
// An image is a directory below images.directory with exactly the name that the job uses. Its files
// are in NAME/rootfs or, without that, in NAME. Or it is an OCI layout there: NAME, or tag TAG of
// the layout NAME if the job says NAME:TAG. A layout is unpacked into the cache
// (clients/agent/images) when a task is prepared. An image is shared by all tasks and read-only.
// Inside, a task has its own /tmp, /run/berth/work (where it starts), /run/berth/scratch,
// /run/berth/hostfile and /run/berth/notify, the node's network, its own processes, and its
// allocated devices.
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
inline constexpr char kImageKeep[] = "/run/berth/keep";
inline constexpr char kImageHostfile[] = "/run/berth/hostfile";
inline constexpr char kImageNotify[] = "/run/berth/notify";
inline constexpr char kImageDoor[] = "/run/berth/door";

// Either a directory or a layout.
struct FoundImage {
  std::string rootfs;
  std::string layout, tag;  // an OCI layout and its tag; no tag: the layout's default
};
// INVALID_ARGUMENT for a name that leads elsewhere ("..", "/x"), NOT_FOUND if it does not exist.
// Links are not followed.
absl::StatusOr<FoundImage> FindImage(const std::string& directory, const std::string& name);

// The starting point of a task in an image.
struct TaskImage {
  std::string rootfs;
  Environment env;                // of the image itself
  std::string working_directory;  // of the image itself; empty: none
  std::vector<std::string> entry_point = {}, command = {};
  // The user that it names, other than root; empty: it names none.
  std::string user = {}, home = {};
  uid_t uid = 0;
  gid_t gid = 0;
};
// The image's own command with these arguments instead of its own. The job is to blame if it has
// none.
absl::StatusOr<std::vector<std::string>> ArgvOf(const TaskImage& image,
                                                std::vector<std::string> args);
// The cached image to which CACHE/used/LINK points. NOT_FOUND if there is no such link.
absl::StatusOr<TaskImage> LinkedImage(const std::string& cache, const std::string& link);

struct Bind {
  std::string source, destination;
  bool writable = false;
  bool devices = true;  // device files there can be opened
};
struct ContainerSpec {
  std::string rootfs;
  std::vector<std::string> argv, env;
  std::string working_directory;
  bool terminal = false;  // crun has one, and gives the command one
  TaskUser user;
  std::vector<Bind> binds;
  std::string shm = "/dev/shm";  // the source of its /dev/shm
  bool writable = false;         // its root
  // In a user namespace, in which `user` is this one; 0: in none.
  uid_t seen_uid = 0;
  gid_t seen_gid = 0;
};
// config.json of the OCI runtime specification.
std::string ContainerConfig(const ContainerSpec& spec);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_IMAGES_H_
