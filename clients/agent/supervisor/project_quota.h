// Project quotas of ext4 and XFS: the kernel limits the usage of a directory tree, and a task that
// exceeds it gets EDQUOT. Standard library only. Errors are errno values, 0 = OK.
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_PROJECT_QUOTA_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_PROJECT_QUOTA_H_

#include <cstdint>
#include <string>
#include <vector>

namespace berth {

// Whether the file system of this directory enforces project quotas (mounted with prjquota), and
// this process may set them.
bool HasProjectQuotas(const std::string& directory);

// Makes these empty directories one project with at most `bytes` and, if not 0, `inodes`. Uses the
// first free project id from `wish` on. `owner` also gets the project's id, for ReadProjectUse, but
// files created in it do not.
int SetProjectQuota(const std::string& owner, const std::vector<std::string>& directories,
                    uint32_t wish, int64_t bytes, int64_t inodes);

struct ProjectUse {
  uint32_t project = 0;  // 0: none
  int64_t used_bytes = 0;
  int64_t limit_bytes = 0;
  int64_t used_files = 0;
  int64_t limit_files = 0;
};
// The usage of the directory's project; all 0 without one.
ProjectUse ReadProjectUse(const std::string& directory);

// Removes the limits of the project on the file system of `file_system`. Call when its files are
// gone.
int ClearProjectQuota(const std::string& file_system, uint32_t project);

// Which limit of its project the first of these directories has reached, for messages; empty: none.
std::string ReachedQuotaText(const std::vector<std::string>& directories);

// "512 MiB", "1.2 GiB"; for messages.
std::string SizeText(int64_t bytes);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_PROJECT_QUOTA_H_
