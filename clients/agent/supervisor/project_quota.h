// Project quotas of ext4 and XFS: the kernel itself bounds what a directory and all below it use,
// and a task that wants more gets EDQUOT. Standard library only. Errors are errno values, 0 = fine.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_PROJECT_QUOTA_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_PROJECT_QUOTA_H_

#include <cstdint>
#include <string>
#include <vector>

namespace berth {

// Whether the file system of this directory enforces project quotas (mounted with prjquota), and
// this process may set them.
bool HasProjectQuotas(const std::string& directory);

// Makes these directories, which are empty, one project of at most `bytes` and, if it is not 0,
// `inodes`: a project that nobody uses yet, looked for from `wish` on. `owner` gets the project's
// number too, for ReadProjectUse, but not what is made in it.
int SetProjectQuota(const std::string& owner, const std::vector<std::string>& directories,
                    uint32_t wish, int64_t bytes, int64_t inodes);

struct ProjectUse {
  uint32_t project = 0;  // 0: none
  int64_t used_bytes = 0;
  int64_t limit_bytes = 0;
  int64_t used_files = 0;
  int64_t limit_files = 0;
};
// Of the project that the directory has; without one all is 0.
ProjectUse ReadProjectUse(const std::string& directory);

// The project of `file_system`, a directory on it, has no limit any more. When its files are gone.
int ClearProjectQuota(const std::string& file_system, uint32_t project);

// "512 MiB", "1.2 GiB"; for messages.
std::string SizeText(int64_t bytes);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_PROJECT_QUOTA_H_
