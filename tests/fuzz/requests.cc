// Sequences of API calls to a server without nodes until a step registers an agent.
#include "tests/fuzz/server_world.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {

void FuzzOne(absl::string_view input) {
  const std::vector<Step> steps = ReadSteps(input);
  // A store created by an older version.
  const bool old = !steps.empty() && steps[0].name == "OldFormat";
  ServerWorld world(old ? kOldestStoreFormat : kStoreFormat);
  RunSteps(world, steps);
  world.Check();
}

}  // namespace berth::fuzz
