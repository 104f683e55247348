// Sequences of calls of the API, on a server without nodes until an agent's step brings one.
#include "tests/fuzz/server_world.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {

void FuzzOne(absl::string_view input) {
  const std::vector<Step> steps = ReadSteps(input);
  // A store that an older version made.
  const bool old = !steps.empty() && steps[0].name == "OldFormat";
  ServerWorld world(old ? kOldestStoreFormat : kStoreFormat);
  RunSteps(world, steps);
  world.Check();
}

}  // namespace berth::fuzz
