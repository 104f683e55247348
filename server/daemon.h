// berthd as a function, for programs that are berthd with custom policies
// (docs/developers/policies.md, deploy/examples/custom-policy):
//
//   int main(int argc, char** argv) {
//     if (!berth::RegisterPolicy("my_filter", &MakeMyFilter).ok()) return 1;
//     return berth::RunDaemon(argc, argv);
//   }
#ifndef BERTH_SERVER_DAEMON_H_
#define BERTH_SERVER_DAEMON_H_

namespace berth {

// Reads the command line of berthd (see --help), serves until SIGTERM or SIGINT, and returns the
// exit code of the process: 0 after a requested stop, 2 for an invalid command line or
// configuration, reported on standard error, 1 for anything else. Register policies before it. Call
// it once, from main, before the process has threads: it blocks signals and waits for them.
int RunDaemon(int argc, char** argv);

}  // namespace berth

#endif  // BERTH_SERVER_DAEMON_H_
