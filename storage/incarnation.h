// Incarnations number the lives of a store.
//
// A store gets an incarnation when it is created and a new one at each restore. Tasks started in an
// earlier incarnation are foreign: agents fence them and keep their output separate
// (docs/developers/reliability.md). Each incarnation starts with job uids far above all that were
// assigned before.
#ifndef BERTH_STORAGE_INCARNATION_H_
#define BERTH_STORAGE_INCARNATION_H_

#include <cstdint>

#include "absl/time/time.h"
#include "core/model/ids.h"

namespace berth {

// Unix milliseconds. If the clock was set back, so that these do not exceed `before`: one to two
// days more than `before`. Uids then skip all that `before` assigned after the backup, and another
// restore of that backup gets another number. Never 0.
uint64_t NextIncarnation(uint64_t before, absl::Time now);

// The first uid that an incarnation assigns to a job: milliseconds from 2026 to its beginning,
// times 2^10. No uid is assigned twice, neither by a restored store nor by another store of the
// site, if each assigns less than 2^10 uids a millisecond on average. 1 for incarnation 0, and if
// the clock was before 2026. Never beyond kLastJobId.
//
//   2026-11-24T03:00Z: 28'263'600'000 ms  ->  28'941'926'400'000 (14 digits)
JobId FirstJobOf(uint64_t incarnation);

}  // namespace berth

#endif  // BERTH_STORAGE_INCARNATION_H_
