// Arrays and schedules between the API and the core.
#ifndef BERTH_SERVER_CONVERT_SERIES_H_
#define BERTH_SERVER_CONVERT_SERIES_H_

#include "berth/v1/job.pb.h"
#include "core/model/cluster_state.h"

namespace berth {

struct JobDefaults;

// Of a validated job that has an array, a schedule or both.
SeriesSpec SeriesFrom(const v1::JobSpec& spec, const JobDefaults& defaults);

void RenderSeries(const SeriesSpec& series, v1::JobSpec* out);
// What the job is a member of, and how far it is if it is a series.
void RenderSeriesStatus(const ClusterState& state, const Job& job, v1::JobStatus* out);

}  // namespace berth

#endif  // BERTH_SERVER_CONVERT_SERIES_H_
