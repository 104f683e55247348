#include "tests/simulation/commit.h"

#include "generated/tests/commit.h"

namespace berth::simulation {

const char* Commit() { return kCommit; }

}  // namespace berth::simulation
