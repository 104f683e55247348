// berthd with custom policies. They have no effect until the configuration names them: custom.yaml.
#include "policies.h"
#include "server/daemon.h"

int main(int argc, char** argv) {
  const bool registered =
      berth::RegisterPolicy("maintenance", &custom::MakeMaintenanceFilter).ok() &&
      berth::RegisterPolicy("newest_first", &custom::MakeNewestFirstScore).ok();
  return registered ? berth::RunDaemon(argc, argv) : 1;
}
