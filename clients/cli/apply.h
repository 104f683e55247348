// Sends manifests to the server: creates or updates queues, priority classes and HyperNodes,
// submits jobs.
#ifndef BERTH_CLIENTS_CLI_APPLY_H_
#define BERTH_CLIENTS_CLI_APPLY_H_

#include <functional>
#include <string>
#include <vector>

#include "clients/cli/manifest.h"
#include "clients/cli/session.h"

namespace berth {

inline constexpr size_t kJobsPerCall = 1000;  // the server's default limit

// Reads all files ("-" = standard input) and prints warnings. If any file is wrong, returns all
// errors and no manifest.
absl::StatusOr<std::vector<Manifest>> ReadManifestFiles(Session& session,
                                                        const std::vector<std::string>& files,
                                                        const ManifestOptions& options);
// Prints the errors of ReadManifestFiles.
ExitCode FinishReading(Session& session, const absl::Status& status);

// HyperNodes first, all or none; then queues and priority classes, in the order written; then jobs,
// all or none for each thousand. Jobs that exist stay unchanged if nothing differs, are updated if
// only priority, labels and walltime differ, and are an error otherwise.
ExitCode ApplyManifests(Session& session, const std::vector<Manifest>& manifests);

// HyperNodes only, all or none; kInvalid for manifests of other kinds. With `dry_run` nothing is
// stored.
ExitCode ApplyHyperNodes(Session& session, const std::vector<Manifest>& manifests, bool dry_run);

struct SubmitOptions {
  bool dry_run = false;          // nothing is stored; prints where a single job would run
  bool print_manifests = false;  // with dry_run: prints the accepted manifests instead
  std::string request_id;
  std::string on_behalf_of;  // the user who owns the jobs; default: the caller
};
// Submits the jobs of all manifests, in one call for each thousand. Adds the names of the submitted
// jobs to `names`.
ExitCode SubmitManifests(Session& session, const std::vector<Manifest>& jobs,
                         const SubmitOptions& options, std::vector<std::string>* names);

// Prints an error of SubmitJobs for these jobs, each violation with the position of its field if
// that is known.
ExitCode FinishSubmit(Session& session, const absl::Status& status,
                      const std::vector<const Manifest*>& jobs);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_APPLY_H_
