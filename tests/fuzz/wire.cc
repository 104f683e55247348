// Output of programs that the agent does not trust: reports of berth-probe, and tables of
// nvidia-smi.
#include "clients/agent/discovery/wire.h"

#include "clients/agent/discovery/render.h"
#include "clients/agent/discovery/topo_matrix.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {

void FuzzOne(absl::string_view input) {
  const auto matrix = discovery::ParseTopoMatrix(input);
  const auto machine = discovery::DecodeMachine(input);
  const auto report = discovery::DecodeReport(input);
  if (report.ok()) discovery::EncodeReport(*report);
  if (!machine.ok()) return;
  discovery::EncodeMachine(*machine);
  discovery::RenderTable(*machine);
  discovery::RenderJson(*machine);
}

}  // namespace berth::fuzz
