// What one browser, one user and all together may use up. docs/developers/web.md, "Guards".
#ifndef BERTH_CLIENTS_WEB_BOUNDS_H_
#define BERTH_CLIENTS_WEB_BOUNDS_H_

#include <cstddef>

#include "absl/time/time.h"
#include "support/http/http_connections.h"

namespace berth::web {

// A connection stays open between requests; it has `request_time` for the next one.
inline constexpr HttpLimits kWebHttp = {.connections = 1024,
                                        .answer_bytes = size_t{256} << 20,
                                        .request_time = absl::Seconds(75),
                                        .answer_time = absl::Seconds(60)};
inline constexpr unsigned kConnectionsOfAddress = 512;  // many users may be behind one proxy
inline constexpr size_t kMaxWebBodyBytes = size_t{1} << 20;
inline constexpr size_t kWebHeaderBytes = size_t{16} << 10;  // with libmicrohttpd's own data
inline constexpr size_t kMaxHeaders = 100;

// How often, and how long each, a server that stops waits for pages to take what was written.
inline constexpr int kLastWordsTries = 100;
inline constexpr absl::Duration kLastWordsWait = absl::Milliseconds(10);

inline constexpr int kStreams = 500;
inline constexpr size_t kDialogBytes = size_t{256}
                                       << 10;  // input of a terminal that berthd has not taken
inline constexpr size_t kTerminalInputBytes = size_t{64} << 10;  // of one call
inline constexpr size_t kEventStreamBytes = size_t{1} << 20;     // unread by one page

inline constexpr size_t kSessions = 10'000;
inline constexpr size_t kSessionsOfUser = 50;
inline constexpr absl::Duration kSessionIdle = absl::Hours(1);

// Of one session.
struct SessionBounds {
  double calls_per_second = 50;
  double calls_together = 200;
  int calls_at_once = 32;
  int streams = 8;
};
// Without sign-in all pages are one session.
inline constexpr SessionBounds kBoundsOfAll = {
    .calls_per_second = 1000, .calls_together = 4000, .calls_at_once = 512, .streams = kStreams};

inline constexpr absl::Duration kCallTimeout = absl::Seconds(30);
inline constexpr size_t kMaxRequestIdBytes = 128;

inline constexpr int kSignInThreads = 4;
inline constexpr size_t kSignInsWaiting = 32;
inline constexpr int kSignInsPerMinute = 60;
inline constexpr size_t kIssuerLogins = 1000;  // begun at an issuer and not finished
inline constexpr absl::Duration kIssuerLoginTime = absl::Minutes(10);

// Changes of the cluster.
inline constexpr absl::Duration kChangesEvery = absl::Milliseconds(500);
inline constexpr absl::Duration kAliveEvery = absl::Seconds(10);
inline constexpr absl::Duration kWatchAfterLastPage = absl::Seconds(30);
inline constexpr absl::Duration kWatchAgainAfter = absl::Milliseconds(500);
inline constexpr size_t kMaxChangesOfMessage = 500;
inline constexpr size_t kKeptMessages = 64;  // for pages that connect again
inline constexpr size_t kKeptBytes = size_t{2} << 20;

}  // namespace berth::web

#endif  // BERTH_CLIENTS_WEB_BOUNDS_H_
