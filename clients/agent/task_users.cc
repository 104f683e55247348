#include "clients/agent/task_users.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clients/agent/disk.h"
#include "clients/agent/fault.h"

namespace berth {
namespace {

constexpr int kMaxGroups = 65536;  // the kernel's NGROUPS_MAX

// Errors of getpwnam; any other error means that there is no such user.
bool CannotLookUp(int error) {
  return error == EINTR || error == EIO || error == EMFILE || error == ENFILE || error == ENOMEM ||
         error == ERANGE || error == ETIMEDOUT || error == ECONNREFUSED;
}

std::vector<gid_t> GroupsOf(const passwd& user) {
  std::vector<gid_t> groups(64);
  int count = static_cast<int>(groups.size());
  while (getgrouplist(user.pw_name, user.pw_gid, groups.data(), &count) < 0 && count < kMaxGroups) {
    count = std::max(count, static_cast<int>(groups.size()) * 2);
    groups.resize(static_cast<size_t>(count));
  }
  groups.resize(static_cast<size_t>(count));
  return groups;
}

TaskUser Itself() {
  const passwd* user = getpwuid(geteuid());
  TaskUser self{.account = "",
                .name = absl::StrCat(geteuid()),
                .uid = geteuid(),
                .gid = getegid(),
                .groups = {},
                .home = "/"};
  if (user == nullptr) return self;
  self.name = user->pw_name;
  self.home = user->pw_dir;
  self.groups = GroupsOf(*user);
  return self;
}

}  // namespace

// A name that only this job requests is the job's fault.
absl::StatusOr<TaskUser> TaskUsers::Find(const std::string& run_as) const {
  absl::StatusOr<TaskUser> user = Look(run_as);
  if (user.ok() || run_as.empty() || absl::IsUnavailable(user.status())) return user;
  return BlameJob(user.status());
}

absl::StatusOr<TaskUser> TaskUsers::Look(const std::string& run_as) const {
  std::string account = default_account_;
  if (!run_as.empty()) {
    const auto found = accounts_.find(run_as);
    if (found == accounts_.end()) {
      return absl::PermissionDeniedError(
          absl::StrCat("this node runs no tasks as ", run_as, ": not in the agent's taskUsers"));
    }
    account = found->second.empty() ? run_as : found->second;
  }
  TaskUser user = Itself();
  if (!account.empty()) {
    errno = 0;
    const passwd* entry = getpwnam(account.c_str());
    if (entry == nullptr && CannotLookUp(errno)) {
      return absl::UnavailableError(
          absl::StrCat("cannot look up user ", account, ": ", std::strerror(errno)));
    }
    if (entry == nullptr) return absl::NotFoundError(absl::StrCat("no such user: ", account));
    user = {.account = entry->pw_name,
            .name = entry->pw_name,
            .uid = entry->pw_uid,
            .gid = entry->pw_gid,
            .groups = {},
            .home = entry->pw_dir};
    user.groups = GroupsOf(*entry);
  }
  if (user.uid == 0 && !allow_root_) {
    return absl::PermissionDeniedError(
        "tasks must not run as root on this node: allowRootTasks is not set");
  }
  if (geteuid() != 0 && user.uid != geteuid()) {
    return absl::PermissionDeniedError(
        absl::StrCat("only an agent that runs as root can run tasks as ", user.name));
  }
  return user;
}

absl::Status MakeOwned(const std::string& path, const TaskUser& user) {
  if (mkdir(path.c_str(), 0700) != 0) return ErrnoStatus(errno, absl::StrCat("create ", path));
  if (geteuid() != 0 || lchown(path.c_str(), user.uid, user.gid) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("chown ", path));
}

}  // namespace berth
