// Links that several jobs cross, and what each of them gets: of a link that k jobs cross, the k-th
// part. A job that crosses it several times in one direction divides its part among the crossings.
//
//   link of 10 Gb/s; job 1 crosses it once, job 2 twice
//     job 1: 5 Gb/s        job 2: 2.5 Gb/s for each crossing
//
// Fair sharing at every link by itself: what a job cannot use, as another link is slower, is not
// given to others. So a job that comes or goes changes the bandwidth only of those that share a
// link with it. No thread safety.
#ifndef BERTH_CLIENTS_REPLAY_LINK_SHARES_H_
#define BERTH_CLIENTS_REPLAY_LINK_SHARES_H_

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

  // Those that share a link with the job, which from now on crosses these links, each named once;
  // it must not have joined. Itself is not among them.
  std::set<JobId> Join(JobId job, std::vector<Crossing> crossings);
  // Those that shared a link with it. It must have joined.
  std::set<JobId> Leave(JobId job);

  // Of its slowest crossing; infinite of one that crosses nothing. It must have joined.
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

#endif  // BERTH_CLIENTS_REPLAY_LINK_SHARES_H_
