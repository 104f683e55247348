// Manifests to the server: queues and HyperNodes made or changed, jobs submitted.
#ifndef BERTH_CLIENTS_CLI_APPLY_H_
#define BERTH_CLIENTS_CLI_APPLY_H_

#include <functional>
#include <string>
#include <vector>

#include "clients/cli/manifest.h"
#include "clients/cli/session.h"

namespace berth {

inline constexpr size_t kJobsPerCall = 1000;  // the server's default bound

// Reads all files ("-" = standard input), telling warnings and errors. Nothing is given out if any
// is wrong.
absl::StatusOr<std::vector<Manifest>> ReadManifestFiles(Session& session,
                                                        const std::vector<std::string>& files,
                                                        const ManifestOptions& options);
// Tells what ReadManifestFiles found wrong.
ExitCode FinishReading(Session& session, const absl::Status& status);

// HyperNodes first, all of them or none; then queues, in the order written; then jobs, all or none
// for each thousand. Jobs that exist are left alone if they say the same, get the new priority and
// labels if only those differ, and are an error otherwise.
ExitCode ApplyManifests(Session& session, const std::vector<Manifest>& manifests);

// HyperNodes alone, all or none: INVALID for manifests of other kinds. With `dry_run` nothing is
// stored.
ExitCode ApplyHyperNodes(Session& session, const std::vector<Manifest>& manifests, bool dry_run);

struct SubmitOptions {
  bool dry_run = false;          // nothing is stored; of a single job it is told where it would go
  bool print_manifests = false;  // with dry_run: instead, the manifests that would be accepted
  std::string request_id;
};
// The jobs of all manifests, as one call for each thousand. Fills `names` with those given by the
// server.
ExitCode SubmitManifests(Session& session, const std::vector<Manifest>& jobs,
                         const SubmitOptions& options, std::vector<std::string>* names);

// Tells an error of SubmitJobs for these jobs, each violation with the place of its field where
// that is known.
ExitCode FinishSubmit(Session& session, const absl::Status& status,
                      const std::vector<const Manifest*>& jobs);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_APPLY_H_
