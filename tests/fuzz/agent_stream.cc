// Sequences of agent messages to a server that has a queue, two registered nodes, and jobs of
// several shapes.
#include "tests/fuzz/server_world.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {
namespace {

constexpr char kBefore[] = R"(@CreateQueue
queue { name: "main" }
---
@Agent 0
hello { node: "n0" agent_id: "id-0" boot_id: "boot-1" inventory { cpu_millis: 8000 memory_bytes: 17179869184 address: "n0"
  devices { kind: "gpu" uuid: "gpu-0" } devices { kind: "gpu" uuid: "gpu-1" max_tasks: 4 } } }
---
@Agent 1
hello { node: "n1" agent_id: "id-1" boot_id: "boot-1" inventory { cpu_millis: 4000 memory_bytes: 8589934592 address: "n1" } }
---
@Agent 0
conditions {}
---
@Agent 1
conditions {}
---
@SubmitJobs
jobs { name: "single" spec { queue: "main" groups { name: "w" replicas: 1 command: "x" resources { cpu_millis: 1000 } } } }
jobs { name: "gang" spec { queue: "main" max_retries: 2 groups { name: "w" replicas: 3 command: "x" resources { cpu_millis: 2000 } } } }
jobs { name: "gpu" spec { queue: "main" groups { name: "w" replicas: 1 command: "x"
  resources { cpu_millis: 100 devices { kind: "gpu" count: 1 } } } } }
---
@Work 0
)";

}  // namespace

void FuzzOne(absl::string_view input) {
  ServerWorld world;
  RunSteps(world, ReadSteps(kBefore));
  RunSteps(world, ReadSteps(input));
  world.Check();
}

}  // namespace berth::fuzz
