// Shares links among the jobs that cross them. Each of the k jobs that cross a link gets 1/k of its
// bandwidth. A job that crosses it several times in one direction divides its part among the
// crossings.
//
//   link of 10 Gb/s; job 1 crosses it once, job 2 twice
//     job 1: 5 Gb/s        job 2: 2.5 Gb/s for each crossing
//
// Each link is shared fairly on its own: bandwidth that a job cannot use because another link is
// slower is not given to others. So a job that joins or leaves changes the bandwidth only of jobs
// that share a link with it. No thread safety.
#ifndef BERTH_OFFLINE_REPLAY_LINK_SHARES_H_
#define BERTH_OFFLINE_REPLAY_LINK_SHARES_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/model/ids.h"

namespace berth::replay {

using LinkIndex = uint32_t;

struct Crossing {
  LinkIndex link = 0;
  int32_t times = 0;  // in the busier direction; >= 1
  bool operator==(const Crossing&) const = default;
};

class LinkShares {
 public:
  // One direction; may be infinite.
  LinkIndex AddLink(double gbps);

  // Adds a job that crosses these links, each listed once; it must not have joined. Returns the
  // other jobs that share a link with it.
  std::set<JobId> Join(JobId job, std::vector<Crossing> crossings);
  // Removes the job, which must have joined. Returns the jobs that shared a link with it.
  std::set<JobId> Leave(JobId job);

  // The bandwidth of the slowest crossing; infinite if the job crosses no link. It must have
  // joined.
  double Gbps(JobId job) const;

 private:
  struct Link {
    double gbps = 0;
    std::set<JobId> jobs;
  };
  std::set<JobId> Sharing(JobId job, const std::vector<Crossing>& crossings) const;

  std::vector<Link> links_;
  std::map<JobId, std::vector<Crossing>> crossings_;
};

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_LINK_SHARES_H_
