// Whether a gang can be composed in several ways: DivisionsOf (core/model/pending_index.h).
#ifndef BERTH_CORE_MODEL_DIVISIONS_H_
#define BERTH_CORE_MODEL_DIVISIONS_H_

#include "core/model/job.h"

namespace berth {

// False: there is only one way. O(groups).
bool Divides(const Job& job);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_DIVISIONS_H_
