// Ids that clients give their calls, so that a call whose response was lost can be repeated: it is
// done once, and repeats get the first response. Requests with a field request_id use that field;
// other unary calls that change something take the id from this metadata.
#ifndef BERTH_SUPPORT_REQUEST_ID_H_
#define BERTH_SUPPORT_REQUEST_ID_H_

#include <cstddef>

namespace berth {

inline constexpr char kRequestIdMetadata[] = "berth-request-id";
inline constexpr size_t kMaxRequestIdBytes = 128;

}  // namespace berth

#endif  // BERTH_SUPPORT_REQUEST_ID_H_
