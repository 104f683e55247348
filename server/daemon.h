// berthd as a function, for programs that are berthd with policies of their own
// (docs/adding-a-policy.md, deploy/examples/custom-policy):
//
//   int main(int argc, char** argv) {
//     if (!berth::RegisterPolicy("my_filter", &MakeMyFilter).ok()) return 1;
//     return berth::RunDaemon(argc, argv);
//   }
#ifndef BERTH_SERVER_DAEMON_H_
#define BERTH_SERVER_DAEMON_H_

namespace berth {

// Reads the command line of berthd (--help tells it), serves until SIGTERM or SIGINT, and returns
// the exit code of the process: 0 after a stop that was asked for, 2 for a wrong command line or
// configuration, told on standard error, 1 for anything else. Policies are registered before it.
// Once, from main, before the process has threads: it blocks signals and waits for them.
int RunDaemon(int argc, char** argv);

}  // namespace berth

#endif  // BERTH_SERVER_DAEMON_H_
