#ifndef BERTH_CLIENTS_SESSION_ENDED_H_
#define BERTH_CLIENTS_SESSION_ENDED_H_

#include "berth/v1/job.pb.h"

namespace berth {

inline bool HasEnded(v1::JobState state) {
  return state == v1::JOB_SUCCEEDED || state == v1::JOB_FAILED || state == v1::JOB_CANCELLED;
}

}  // namespace berth

#endif  // BERTH_CLIENTS_SESSION_ENDED_H_
