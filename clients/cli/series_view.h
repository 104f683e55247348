// Arrays and schedules, for people.
#ifndef BERTH_CLIENTS_CLI_SERIES_VIEW_H_
#define BERTH_CLIENTS_CLI_SERIES_VIEW_H_

#include <string>

#include "berth/v1/job.pb.h"
#include "clients/cli/page.h"
#include "clients/cli/session.h"

namespace berth {

// "412/1000": jobs of an array that run or have ended, of all. "" for any other job.
std::string SeriesCount(const v1::Job& job);
// "50 unfinished, 359 succeeded, 3 failed"; "" if nothing was made yet.
std::string SeriesCounts(const v1::SeriesStatus& status);
void AddSeries(const v1::Job& job, const Session& session, Page* page);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_SERIES_VIEW_H_
