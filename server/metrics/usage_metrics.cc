#include "server/metrics/usage_metrics.h"

#include <algorithm>
#include <cstdint>

namespace berth {
namespace {

double AsFigure(uint64_t value) { return static_cast<double>(value); }

}  // namespace

void AddUsageHistory(const History& history, Time now, FamilyList& out) {
  const HistoryCounters& counters = *history.counters();
  const uint64_t lag = history.Lag();
  const int64_t time_ms = counters.time_ms;
  const Duration behind = time_ms == 0 ? Duration() : now - absl::FromUnixMillis(time_ms);
  out.Gauge("usage_history_lag_turns", "Turns of the event log that it has not counted yet.",
            AsFigure(lag));
  out.Gauge("usage_history_lag_seconds",
            "Age of the last turn that it has counted, while there are others.",
            lag == 0 ? 0 : std::max(0.0, absl::ToDoubleSeconds(behind)));
  out.Gauge("usage_history_failed", "1: its last step failed; the log of berthd says why.",
            counters.failed ? 1 : 0);
  out.Gauge("usage_history_bytes", "Size of its files, about.", AsFigure(counters.bytes));
  out.Gauge("usage_history_keys",
            "Combinations of queue, user, account and class in use; beyond usage.keys they count "
            "as \"(others)\".",
            AsFigure(counters.keys));
  out.Counter("usage_history_events", "Events that it has counted.", AsFigure(counters.events));
  out.Counter("usage_history_rows_written", "Rows of periods that it has written.",
              AsFigure(counters.rows_written));
  out.Counter("usage_history_jobs_written", "Ended jobs that it has written.",
              AsFigure(counters.jobs_written));
  out.Counter("usage_history_restarts",
              "How often it could not continue, and began again with what the log still had.",
              AsFigure(counters.begun_again));
}

}  // namespace berth
