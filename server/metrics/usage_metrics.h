// Metrics of the usage history.
#ifndef BERTH_SERVER_METRICS_USAGE_METRICS_H_
#define BERTH_SERVER_METRICS_USAGE_METRICS_H_

#include "core/model/ids.h"
#include "server/history/history.h"
#include "server/metrics/families.h"

namespace berth {

void AddUsageHistory(const History& history, Time now, FamilyList& out);

}  // namespace berth

#endif  // BERTH_SERVER_METRICS_USAGE_METRICS_H_
