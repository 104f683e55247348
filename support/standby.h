// What servers of a cluster with high availability and their clients tell each other in the
// metadata of calls.
#ifndef BERTH_SUPPORT_STANDBY_H_
#define BERTH_SUPPORT_STANDBY_H_

namespace berth {

// How the message of a standby's refusal begins, with UNAVAILABLE: nothing has happened there.
inline constexpr char kStandbyMessage[] = "this server is a standby";

// Trailer of an answer by a standby: where the leader is, "HOST:PORT". A hint; absent while nobody
// leads.
inline constexpr char kLeaderMetadata[] = "berth-leader";
// Of a call: "allow": a standby may answer from its own state. Trailer of its answer: its revision.
inline constexpr char kStaleMetadata[] = "berth-stale";
inline constexpr char kStaleAllowed[] = "allow";
inline constexpr char kStaleRevisionMetadata[] = "berth-stale-revision";

}  // namespace berth

#endif  // BERTH_SUPPORT_STANDBY_H_
