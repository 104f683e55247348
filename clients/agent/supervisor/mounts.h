// Mounts that a job chooses, in the task's own mount namespace: volumes, and the writable layer of
// its image. Standard library only.
//
// A source is opened before the task has mounts of its own, with the file system rights of its user
// and without leaving the directory that the node's operator offers; from then on only the open
// file counts, so nobody can exchange what a path names in between. No user database is read after
// the first of these mounts.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_MOUNTS_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_MOUNTS_H_

#include <pwd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "clients/agent/supervisor/spec.h"

namespace berth {

// One volume. An entry of SupervisorSpec::volumes.
struct VolumeMount {
  std::string name;  // its path as the job wrote it, for messages
  // Where it is mounted. A task without a container: exists, the user can reach it. A container:
  // created here; the runtime mounts it from there into the image.
  std::string at;
  // A directory, and a path below it, relative, maybe empty; a link that leads out of the directory
  // is an error. Empty: the volume is a tmpfs of `bytes`.
  std::string root, below;
  bool own = false;  // made by the agent: the user need not be able to reach it
  bool read_only = false;
  int64_t bytes = 0;
};
std::string EncodeVolume(const VolumeMount& volume);
bool DecodeVolume(std::string_view text, VolumeMount* volume);

// Why something could not be mounted. `volume`: its index; -1: the image's layer.
struct MountError {
  enum Step : int { kNone, kOpen, kMount, kPoint, kAttach };
  int volume = -1;
  int step = kNone;
  int error = 0;  // errno
};
// For people; and whether the job is to blame.
std::string MountErrorText(const SupervisorSpec& spec, const MountError& error);
bool IsJobsMountError(const MountError& error);

// Of one task, in the process that becomes its command.
class VolumeMounts {
 public:
  // `user`: who must be able to reach sources and mount points; null: this process's user.
  VolumeMounts(const SupervisorSpec& spec, const passwd* user) : spec_(spec), user_(user) {}
  ~VolumeMounts();
  VolumeMounts(const VolumeMounts&) = delete;
  VolumeMounts& operator=(const VolumeMounts&) = delete;

  // Opens all sources. Requires the user's supplementary groups.
  MountError Open();
  // Of a container, in its mount namespace: makes the mount points in the image's layer; without
  // one they must exist.
  MountError MakePoints() const;
  // Mounts them. In the task's mount namespace, after all other mounts.
  MountError Attach();

 private:
  int OpenPoint(const std::string& path, int source) const;

  const SupervisorSpec& spec_;
  const passwd* const user_;
  std::vector<int> sources_;
};

// Creates the mount namespace in which a container runtime starts, with the image's writable layer
// and the container's volumes. No-op if it has neither.
MountError EnterContainerMounts(const SupervisorSpec& spec);

// Whether `directory`, which has upper/, work/ and root/, can be the writable layer of an image in
// `lower`; tried in a child. Returns an errno.
int TryWritableLayer(const std::string& directory, const std::string& lower);

// Whether this process may create user namespaces with maps of their own. Returns an errno.
int TryUserNamespaces();

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_MOUNTS_H_
