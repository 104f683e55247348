// Reads of what is not on the server's disk yet. A read is answered when all that it saw is
// durable, so that no crash can take the answer back; while a sync takes long, it waits. A call
// with this metadata is answered soon nevertheless, and, if it had to be, with the same in its
// trailing metadata: what it says may be taken back.
#ifndef BERTH_SUPPORT_UNSYNCED_H_
#define BERTH_SUPPORT_UNSYNCED_H_

namespace berth {

inline constexpr char kUnsyncedMetadata[] = "berth-unsynced";
inline constexpr char kUnsyncedAllowed[] = "allow";  // in the request
inline constexpr char kUnsyncedSeen[] = "seen";      // in the answer

}  // namespace berth

#endif  // BERTH_SUPPORT_UNSYNCED_H_
