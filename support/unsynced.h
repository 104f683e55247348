// Reads of state that is not yet durable. A read normally returns once everything that it saw is
// durable, so that no crash can revoke it; a slow sync delays it. A call with this metadata returns
// soon anyway. If its response may still be revoked, its trailing metadata says so.
#ifndef BERTH_SUPPORT_UNSYNCED_H_
#define BERTH_SUPPORT_UNSYNCED_H_

namespace berth {

inline constexpr char kUnsyncedMetadata[] = "berth-unsynced";
inline constexpr char kUnsyncedAllowed[] = "allow";  // in the request metadata
inline constexpr char kUnsyncedSeen[] = "seen";      // in the trailing metadata

}  // namespace berth

#endif  // BERTH_SUPPORT_UNSYNCED_H_
