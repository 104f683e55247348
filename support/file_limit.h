// The limit of open files of this process.
#ifndef BERTH_SUPPORT_FILE_LIMIT_H_
#define BERTH_SUPPORT_FILE_LIMIT_H_

#include <sys/resource.h>

namespace berth {

// Raises the soft limit to the hard limit.
inline void RaiseFileLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace berth

#endif  // BERTH_SUPPORT_FILE_LIMIT_H_
