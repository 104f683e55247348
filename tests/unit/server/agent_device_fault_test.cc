// Failures that agents blame on a device.
#include <catch2/catch.hpp>

#include "server/validation/lifecycle.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;

TEST_CASE("reports: a fault of a device is no failure of the job") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  const bool old = GENERATE(false, true);
  if (old) world.store_format = kFormatOfProgress - 1;
  const JobId id = world.Submit("j1");
  agent.Work();
  REQUIRE(agent.Runs(id));
  v1::TaskReport report = agent.ReportFor(id, 0, 1, v1::TaskReport::EXITED);
  report.set_exit_code(134);
  report.set_cause(v1::TaskReport::DEVICE_FAULT);
  report.set_message("GPU-1: XID 79");
  agent.Report(report);
  world.Run();
  CHECK(world.job(id).status.retries == 0);
  CHECK_FALSE(Ended(world.job(id).status.state));
  const std::string& message = world.job(id).status.message;
  CHECK(message ==
        (old ? "worker-0 was lost on n1" : "worker-0 exited with 134 on n1: GPU-1: XID 79"));
}

}  // namespace
}  // namespace berth
