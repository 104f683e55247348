// berthd: the control plane of a Berth cluster.
#include "server/daemon.h"

int main(int argc, char** argv) { return berth::RunDaemon(argc, argv); }
