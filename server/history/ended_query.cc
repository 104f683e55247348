// ListEndedJobs.
#include <algorithm>
#include <string>
#include <utility>

#include "server/history/history_periods.h"
#include "server/history/history_query.h"
#include "storage/keys.h"
#include "support/proto_time.h"
#include "support/wildcard.h"

namespace berth {
namespace {

using v1::ListEndedJobsRequest;

bool IsAsked(const ListEndedJobsRequest& request, const v1::EndedJob& job) {
  const auto& states = request.states();
  if (!states.empty() && std::find(states.begin(), states.end(), job.state()) == states.end()) {
    return false;
  }
  return (request.queue().empty() || IsInQueue(job.queue_path(), request.queue())) &&
         (request.user().empty() || job.user() == request.user()) &&
         (request.owner().empty() || job.owner() == request.owner()) &&
         (request.account().empty() || job.account() == request.account()) &&
         (request.name_pattern().empty() || MatchesPattern(job.name(), request.name_pattern()));
}

// False: the caller may not see it at all. What only readers of the job may see is taken out.
bool ShowEnded(QueueSights& sights, v1::EndedJob* job) {
  const bool own = sights.IsOwn(job->owner());
  const QueueSight sight = own ? QueueSight::kAll : sights.Of(job->queue_path());
  if (sight == QueueSight::kAll) return true;
  if (sight != QueueSight::kJobs) return false;
  job->clear_labels();
  job->clear_message();
  job->clear_exit_code();
  job->clear_exit_signal();
  return true;
}

class EndedPage {
 public:
  EndedPage(const ListEndedJobsRequest& request, QueueSights& sights, HistoryPage& page,
            v1::ListEndedJobsResponse& response)
      : request_(request), sights_(sights), page_(page), response_(response) {}

  // False: the page is full; the next one goes on after `page.after`.
  bool Take(absl::string_view key, absl::string_view value) {
    if (response_.jobs_size() == page_.size || examined_ == kMaxEndedExamined) return false;
    ++examined_;
    page_.after = std::string(key);
    v1::EndedJob job;
    if (!job.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
      damaged_ = true;
      return false;
    }
    if (IsAsked(request_, job) && ShowEnded(sights_, &job)) {
      *response_.add_jobs() = std::move(job);
    }
    return true;
  }
  bool damaged() const { return damaged_; }

 private:
  const ListEndedJobsRequest& request_;
  QueueSights& sights_;
  HistoryPage& page_;
  v1::ListEndedJobsResponse& response_;
  size_t examined_ = 0;
  bool damaged_ = false;
};

int64_t MsOfTimestamp(const google::protobuf::Timestamp& time) {
  const Time from = TimeFrom(time);
  return absl::ToUnixMillis(absl::UnixEpoch() +
                            absl::Ceil(from - absl::UnixEpoch(), absl::Milliseconds(1)));
}

// All of them in one page.
absl::Status ListByUid(const HistoryDb::View& view, const ListEndedJobsRequest& request,
                       const std::string& since, const std::string& until, EndedPage& page) {
  std::vector<std::string> keys;
  for (const uint64_t uid : request.uids()) {
    absl::StatusOr<std::string> key = view.Get(HistoryFamily::kEndedByUid, JobKey(JobId{uid}));
    if (absl::IsNotFound(key.status())) continue;
    if (!key.ok()) return key.status();
    if (*key >= since && *key < until) keys.push_back(*std::move(key));
  }
  std::sort(keys.rbegin(), keys.rend());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  for (const std::string& key : keys) {
    const absl::StatusOr<std::string> job = view.Get(HistoryFamily::kEnded, key);
    if (absl::IsNotFound(job.status())) continue;  // forgotten
    if (!job.ok()) return job.status();
    if (!page.Take(key, *job)) return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AnswerEndedJobs(const HistoryDb& database, const ListEndedJobsRequest& request,
                             QueueSights& sights, HistoryPage& page,
                             v1::ListEndedJobsResponse& response) {
  const HistoryDb::View view(database);
  const auto position = history_query::ReadPosition(view);
  if (!position.ok()) return position.status();
  const int64_t since_ms = request.has_since() ? MsOfTimestamp(request.since()) : 0;
  const int64_t until_ms =
      request.has_until() ? MsOfTimestamp(request.until()) : position->time_ms() + 1;
  history_query::SetState(*position, v1::HISTORY_STEP_HOUR, {since_ms, until_ms},
                          response.mutable_state());
  const std::string since = EndedKey(since_ms, JobId{});
  std::string until = EndedKey(until_ms, JobId{});
  if (!page.after.empty()) until = std::min(until, page.after);
  EndedPage rows(request, sights, page, response);
  bool more = false;
  absl::Status listed;
  if (request.uids_size() > 0) {
    listed = ListByUid(view, request, since, until, rows);
  } else if (since < until) {
    listed = view.Scan(
        HistoryFamily::kEnded, since, until,
        [&](absl::string_view key, absl::string_view value) {
          more = !rows.Take(key, value);
          return !more;
        },
        /*back=*/true);
  }
  if (rows.damaged()) return absl::DataLossError("the usage history: a damaged job");
  if (!more) page.after.clear();
  return listed;
}

}  // namespace berth
