// Incarnations: which life of a store something belongs to.
//
// A store gets an incarnation when it is made and a new one at each restore. What it started in an
// earlier one is foreign to it: agents fence that and keep its output apart (docs/agent.md). Job
// uids begin anew with each, far above all that were given out before.
#ifndef BERTH_STORAGE_INCARNATION_H_
#define BERTH_STORAGE_INCARNATION_H_

#include <cstdint>

#include "absl/time/time.h"
#include "core/model/ids.h"

namespace berth {

// Unix milliseconds. Where the clock was set back, and these are no more than `before`: one to two
// days more than `before`, so that uids leap past all that `before` gave out after a backup, and
// another restore of that backup gets another number. Never 0.
uint64_t NextIncarnation(uint64_t before, absl::Time now);

// The least uid that an incarnation gives to a job: milliseconds from 2026 to its beginning, times
// 2^10. So no uid is given out twice, by a restored store or by another store of a site, as long as
// each took less than 2^10 jobs a millisecond on average. 1 for incarnation 0, and for one of a clock that
// stood before 2026. Never beyond kLastJobId.
//
//   2026-11-24T03:00Z: 28'263'600'000 ms  ->  28'941'926'400'000 (14 digits)
JobId FirstJobOf(uint64_t incarnation);

}  // namespace berth

#endif  // BERTH_STORAGE_INCARNATION_H_
