// Answers to queries of the usage history, from its database. What a caller may see of a queue is
// asked for each queue that rows name. Requests are valid (server/validation/history.h).
#ifndef BERTH_SERVER_HISTORY_HISTORY_QUERY_H_
#define BERTH_SERVER_HISTORY_HISTORY_QUERY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "berth/store/v1/history.pb.h"
#include "berth/v1/history.pb.h"
#include "server/history/history_db.h"

namespace berth {

// What the caller may see of a queue that exists or existed.
enum class QueueSight : uint8_t {
  kNothing,
  kSums,  // its usage, but not whose it is
  kJobs,  // whose usage it is; jobs, as everybody may see them
  kAll,   // everything of its jobs
};

// Asks once for each queue.
class QueueSights {
 public:
  // `own_user`: whose usage and jobs the caller may see in any case; "" = nobody's.
  QueueSights(std::function<QueueSight(const std::string& path)> ask, std::string own_user)
      : ask_(std::move(ask)), own_user_(std::move(own_user)) {}
  QueueSight Of(const std::string& path) {
    const auto [found, fresh] = known_.try_emplace(path);
    if (fresh) found->second = ask_(path);
    return found->second;
  }
  bool IsOwn(const std::string& user) const { return !user.empty() && user == own_user_; }

 private:
  std::function<QueueSight(const std::string&)> ask_;
  std::string own_user_;
  std::map<std::string, QueueSight> known_;
};

// One page; `after`: the key of the last row of the page before, and then of this one's: "" = it
// was the last.
struct HistoryPage {
  int size = 100;
  std::string after;
};

inline constexpr size_t kMaxHistoryRows = 5'000'000;  // that one answer reads
inline constexpr size_t kMaxHistoryGroups = 200'000;  // rows of one period
inline constexpr size_t kMaxHistoryPeriods = 20'000;  // that one answer looks at
inline constexpr size_t kMaxEndedExamined = 200'000;

absl::Status AnswerUsage(const HistoryDb& database, const v1::GetUsageRequest& request,
                         QueueSights& sights, HistoryPage& page, v1::GetUsageResponse& response);
absl::Status AnswerCapacity(const HistoryDb& database, const v1::GetCapacityRequest& request,
                            HistoryPage& page, v1::GetCapacityResponse& response);
absl::Status AnswerEndedJobs(const HistoryDb& database, const v1::ListEndedJobsRequest& request,
                             QueueSights& sights, HistoryPage& page,
                             v1::ListEndedJobsResponse& response);

// True if the queue, or one above it, has that name.
bool IsInQueue(const std::string& path, const std::string& queue);

}  // namespace berth

#endif  // BERTH_SERVER_HISTORY_HISTORY_QUERY_H_
