// berth-probe: looks at the machine, or reads a topology file, for berth-agent. Not for people.
#include "clients/discovery/probe.h"

int main(int argc, char** argv) { return berth::discovery::ProbeMain(argc, argv); }
