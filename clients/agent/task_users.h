// The users that tasks run as: the agent's task_user, or the entry of its task_users for the name
// that a job requests. No name from a job is looked up in the machine's user database directly.
#ifndef BERTH_CLIENTS_AGENT_TASK_USERS_H_
#define BERTH_CLIENTS_AGENT_TASK_USERS_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace berth {

struct TaskUser {
  std::string account;  // empty: the agent's own user
  std::string name;     // for messages and USER
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // all groups, including `gid`
  std::string home;
};

// Creates a directory that only this user may enter. It must not exist.
absl::Status MakeOwned(const std::string& path, const TaskUser& user);

class TaskUsers {
 public:
  TaskUsers(std::string default_account, std::map<std::string, std::string> accounts,
            bool allow_root)
      : default_account_(std::move(default_account)),
        accounts_(std::move(accounts)),
        allow_root_(allow_root) {}

  // The user for TaskLaunch.run_as. PERMISSION_DENIED for a name that the configuration lacks, for
  // root unless it is allowed, and for any other user if the agent is not root; NOT_FOUND for an
  // account that does not exist.
  absl::StatusOr<TaskUser> Find(const std::string& run_as) const;

 private:
  absl::StatusOr<TaskUser> Look(const std::string& run_as) const;

  const std::string default_account_;
  const std::map<std::string, std::string> accounts_;  // "" = the name itself
  const bool allow_root_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_TASK_USERS_H_
