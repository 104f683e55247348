// berthd with our policies. They do nothing until the configuration names them: see custom.yaml.
#include "policies.h"
#include "server/daemon.h"

int main(int argc, char** argv) {
  const bool registered =
      berth::RegisterPolicy("maintenance", &custom::MakeMaintenanceFilter).ok() &&
      berth::RegisterPolicy("newest_first", &custom::MakeNewestFirstScore).ok();
  return registered ? berth::RunDaemon(argc, argv) : 1;
}
