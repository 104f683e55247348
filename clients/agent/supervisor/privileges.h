// Drops privileges and applies limits before a process becomes a task's.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_PRIVILEGES_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_PRIVILEGES_H_

#include <pwd.h>

#include <string>
#include <vector>

#include "clients/agent/supervisor/spec.h"

namespace berth {

// While it lives, this thread opens and makes files with the rights of the user, if it is root: the
// kernel takes away the capabilities that override permissions.
class FileRights {
 public:
  FileRights(uid_t uid, gid_t gid);
  ~FileRights();
  FileRights(const FileRights&) = delete;
  FileRights& operator=(const FileRights&) = delete;

 private:
  const bool on_;
};

// Sets default actions for all signals and unblocks them.
void ResetSignals();

// Sets the user's supplementary groups, if this process is root. Reads the machine's files, so it
// must come before mounts that a job chooses. Returns an errno.
int TakeGroups(const passwd* user);

// Sets group and user, and forbids new privileges (no_new_privs: set-user-id
// programs gain nothing). Returns an errno. `user` null: keeps this process's user.
int BecomeUser(const passwd* user);

// Sets RLIMIT_DATA and the CPUs, if no control group limits them. Returns an errno.
int ApplyLimits(const SupervisorSpec& spec);

// As exec needs them: pointers into `strings`, then null.
std::vector<char*> Pointers(const std::vector<std::string>& strings);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_PRIVILEGES_H_
