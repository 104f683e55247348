// The output of a task for one page: ReadLogs as server-sent events. The next part is read from
// berthd when the connection has taken the last one.
#ifndef BERTH_CLIENTS_WEB_LOG_FOLLOW_H_
#define BERTH_CLIENTS_WEB_LOG_FOLLOW_H_

#include <functional>
#include <memory>

#include "berth/v1/job.pb.h"
#include "clients/web/event_stream.h"
#include "clients/web/upstream.h"

namespace berth::web {

// Ends with the page, the task, or the session's certificate.
std::shared_ptr<EventStream> FollowLogs(const std::shared_ptr<Upstream>& upstream,
                                        const berth::v1::ReadLogsRequest& request,
                                        std::function<void()> ended);

}  // namespace berth::web

#endif  // BERTH_CLIENTS_WEB_LOG_FOLLOW_H_
