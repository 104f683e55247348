// Arrays and schedules between the API and the core.
#ifndef BERTH_SERVER_CONVERT_SERIES_H_
#define BERTH_SERVER_CONVERT_SERIES_H_

#include "berth/v1/job.pb.h"
#include "core/model/cluster_state.h"

namespace berth {

struct JobDefaults;

// Validated.
SeriesSpec ArrayFrom(const v1::Array& array, const JobDefaults& defaults);
SeriesSpec ScheduleFrom(const v1::Schedule& schedule);

void RenderSeries(const SeriesSpec& series, v1::JobSpec* out);
// What the job is a member of, and how far it is if it is a series.
void RenderSeriesStatus(const ClusterState& state, const Job& job, v1::JobStatus* out);

}  // namespace berth

#endif  // BERTH_SERVER_CONVERT_SERIES_H_
