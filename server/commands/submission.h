// A SubmitJobs call on its way into the state. The handler checks it in one pass and does the heavy
// work: names become indexes, and specs become core values and cold bytes. The loop thread then
// only checks what depends on the state, and emits.
#ifndef BERTH_SERVER_COMMANDS_SUBMISSION_H_
#define BERTH_SERVER_COMMANDS_SUBMISSION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "berth/config/v1/config.pb.h"
#include "berth/v1/job.pb.h"
#include "core/devices/share_counter.h"
#include "core/model/cluster_state.h"
#include "core/topology/gang_topology.h"
#include "server/commands/request_table.h"
#include "server/convert/job.h"
#include "server/loop/turn.h"
#include "server/reads/read_view.h"
#include "server/validation/submission.h"

namespace berth {

class OwnedJobs;
class Rights;

// Whose submission it is; nullptr: Berth's own.
struct Submitter {
  Rights* rights = nullptr;
  OwnedJobs* owned = nullptr;  // for the limit of the owner's jobs
};

// A request that is valid by itself; only CheckSubmission makes one. The request outlives it.
class CheckedSubmission {
 public:
  const v1::SubmitJobsRequest& request() const { return *request_; }
  const CallDependencies& dependencies() const { return dependencies_; }
  uint32_t store_format() const { return store_format_; }

 private:
  friend absl::StatusOr<CheckedSubmission> CheckSubmission(ReadView& view,
                                                           const v1::SubmitJobsRequest& request,
                                                           const config::v1::Limits& limits,
                                                           uint32_t store_format, Rights* rights);
  CheckedSubmission(const v1::SubmitJobsRequest& request, CallDependencies dependencies,
                    uint32_t store_format)
      : request_(&request), dependencies_(std::move(dependencies)), store_format_(store_format) {}

  const v1::SubmitJobsRequest* request_;
  CallDependencies dependencies_;
  uint32_t store_format_;
};

// Returns the checked submission, or all violations: those of the request by itself and, if there
// are any, those against the state too, so that the client sees everything at once. A request that
// is valid by itself is checked against the state in Submission::Check. `rights`: as in
// CheckJobsAgainst.
absl::StatusOr<CheckedSubmission> CheckSubmission(ReadView& view,
                                                  const v1::SubmitJobsRequest& request,
                                                  const config::v1::Limits& limits,
                                                  uint32_t store_format, Rights* rights = nullptr);

class Submission {
 public:
  // `owner`: of the jobs; may be empty.
  Submission(CheckedSubmission checked, const config::v1::Limits& limits,
             const JobDefaults& defaults, const std::string& owner = {});

  // Violations against the state: queues and dependencies (NOT_FOUND, FAILED_PRECONDITION), names
  // in use (ALREADY_EXISTS), limits (RESOURCE_EXHAUSTED). Reader lock or loop thread.
  absl::Status Check(const ClusterState& state, Rights* rights = nullptr) const;

  // All jobs or none: on any error nothing has changed. Loop thread, once. A repeated request id
  // gets its first response. INTERNAL if Apply refuses what Check accepted. Uids are the state's
  // next ones, but at least `first_job` (FirstJobOf of the store).
  absl::Status Commit(Turn& turn, RequestTable& requests, JobId first_job,
                      v1::SubmitJobsResponse& response, const Submitter& submitter = {});

  // Instead of Commit, for a submission that Check accepted: the response it would get, without
  // uids and without generated names. Reader lock or loop thread, once.
  void Preview(const ClusterState& state, v1::SubmitJobsResponse& response);

  // Instead of Commit, for a submission of one job that Check accepted: the job as it would be
  // submitted now. Once.
  JobSpec TakeOnly(const ClusterState& state);

 private:
  struct QueueUse {
    std::string name;
    int64_t jobs = 0;
    int64_t tasks = 0;
  };

  size_t QueueIndex(const std::string& name, int64_t tasks);
  void NoteKinds(const JobSpec& spec);
  absl::Status CheckNames(const ClusterState& state) const;
  absl::Status CheckBounds(const ClusterState& state) const;
  absl::Status CheckClusterBounds(const ClusterState& state) const;
  absl::Status CheckQueueBounds(const Queue& queue, const QueueUse& more) const;
  std::vector<JobDependency> ResolveDependencies(const ClusterState& state, size_t job,
                                                 JobId first) const;
  JobId IdOf(size_t job, JobId first) const;
  JobSpec Take(const ClusterState& state, size_t job, JobId first, QueueId queue,
               ShareCounter* shares);
  absl::Status Emit(Turn& turn, JobId first);
  absl::Status CheckRepeats(const ClusterState& state, JobId first) const;
  void Fill(const ClusterState& state, JobId first, v1::SubmitJobsResponse& response) const;

  const v1::SubmitJobsRequest& request() const { return checked_.request(); }
  // Jobs in the order of their uids; empty: the order of the request.
  const std::vector<int>& order() const { return checked_.dependencies().order; }

  CheckedSubmission checked_;
  int64_t active_jobs_limit_;
  int64_t active_tasks_limit_;
  QueueDefaults of_queues_;
  GangTopology gangs_;
  std::optional<int32_t> preemptible_below_;
  std::string owner_;
  std::string fingerprint_;     // if there is a request id
  std::vector<JobSpec> specs_;  // parallel to the request's jobs, like the next two
  std::vector<ColdPart> colds_;
  std::vector<size_t> queue_of_;  // index into queues_
  std::vector<QueueUse> queues_;
  std::vector<std::string> kinds_;  // device kinds and extended resources, each once
  std::vector<size_t> position_;    // of each job in order(); empty like that
};

// The generated name of a job that was submitted without one.
std::string GivenJobName(JobId id);

}  // namespace berth

#endif  // BERTH_SERVER_COMMANDS_SUBMISSION_H_
