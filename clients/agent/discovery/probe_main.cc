// berth-probe: reads the machine or a topology file for berth-agent. Not for direct use.
#include "clients/agent/discovery/probe.h"

int main(int argc, char** argv) { return berth::discovery::ProbeMain(argc, argv); }
