// Metrics of a cluster with high availability.
#ifndef BERTH_SERVER_METRICS_HA_METRICS_H_
#define BERTH_SERVER_METRICS_HA_METRICS_H_

#include "server/ha/high_availability.h"
#include "server/metrics/families.h"

namespace berth {

void AddHighAvailability(const HighAvailability& ha, FamilyList& out);

}  // namespace berth

#endif  // BERTH_SERVER_METRICS_HA_METRICS_H_
