// Which users of this machine tasks run as: the agent's task_user, or what its task_users say for
// the name that a job asks for. Nothing that a job says is looked up in the machine's user
// database.
#ifndef BERTH_CLIENTS_AGENT_TASK_USERS_H_
#define BERTH_CLIENTS_AGENT_TASK_USERS_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace berth {

struct TaskUser {
  std::string account;  // empty: who the agent is, and stays
  std::string name;     // for people and USER
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // all of them, `gid` too
  std::string home;
};

class TaskUsers {
 public:
  TaskUsers(std::string default_account, std::map<std::string, std::string> accounts,
            bool allow_root)
      : default_account_(std::move(default_account)),
        accounts_(std::move(accounts)),
        allow_root_(allow_root) {}

  // The user for TaskLaunch.run_as. PERMISSION_DENIED for a name that the configuration does not
  // have, for root unless it is allowed, and for others than itself if the agent is not root;
  // NOT_FOUND for an account that the machine does not have.
  absl::StatusOr<TaskUser> Find(const std::string& run_as) const;

 private:
  absl::StatusOr<TaskUser> Look(const std::string& run_as) const;

  const std::string default_account_;
  const std::map<std::string, std::string> accounts_;  // "" = the name itself
  const bool allow_root_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_TASK_USERS_H_
