// The only conversion between store records and the core. Values are berth.store.v1 messages; keys
// are in storage/keys.h.
//
// Encoding is canonical: equal values give equal bytes. Decoding trusts nothing: bytes that are not
// a valid record return DATA_LOSS, naming kind, key and reason, and never crash. Ids and counts are
// not checked against other records (the loader does that, storage/load.h). Pure functions;
// thread-safe (some keep a scratch message per thread).
#ifndef BERTH_STORAGE_CODEC_H_
#define BERTH_STORAGE_CODEC_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/access/actor.h"
#include "core/model/event.h"
#include "core/model/hyper_node.h"
#include "core/model/ids.h"
#include "core/model/job.h"
#include "core/model/node.h"
#include "core/model/queue.h"
#include "core/prediction/run_history.h"

namespace berth::store::v1 {
class JobSpec;
class LogEvent;
class LogTurn;
}  // namespace berth::store::v1

namespace berth {

// ---- Records. `unknown` receives the fields that this version does not know, as bytes to append
// when the record is rewritten (storage/preserved.h); null discards them.

struct NextIds {
  JobId job{1};
  NodeId node{1};
  QueueId queue{1};
  HyperNodeId hyper_node{1};
  bool operator==(const NextIds&) const = default;
};
std::string EncodeNextIds(const NextIds& ids);
absl::StatusOr<NextIds> DecodeNextIds(absl::string_view value, std::string* unknown);

std::string EncodeRequestMix(const RequestMix& mix);
absl::StatusOr<RequestMix> DecodeRequestMix(absl::string_view value, std::string* unknown);

// The priority classes, as the change that makes them out of none.
std::string EncodePriorityClasses(const PriorityClassChange& classes);
absl::StatusOr<PriorityClassChange> DecodePriorityClasses(absl::string_view value,
                                                          std::string* unknown);

// The access rules, as the change that makes them out of none.
std::string EncodeAccessRecord(const AccessChange& rules);
absl::StatusOr<AccessChange> DecodeAccessRecord(absl::string_view value, std::string* unknown);

struct StoredRun {
  RunId id;
  FinishedRun run;
};
std::string EncodeRunRecord(const FinishedRun& run);
absl::StatusOr<StoredRun> DecodeRunRecord(absl::string_view key, absl::string_view value,
                                          std::string* unknown);

// The longest lease that any agent may have been granted. DATA_LOSS also if it is not positive or
// is infinite.
struct GrantedLease {
  Duration longest;  // that any agent may hold
  Duration usual;    // what agents hold without pauses; at most `longest`
  // Set by a restore, until the server's first turn: no node has reconnected to this incarnation.
  bool restored = false;
};
std::string EncodeLeaseRecord(GrantedLease granted);
absl::StatusOr<GrantedLease> DecodeLeaseRecord(absl::string_view value);

struct StoredQueue {
  QueueId id;
  QueueSpec spec;
  bool open = true;
  std::vector<NamedAmount> usage;             // Queue::usage
  Time usage_charged = absl::InfinitePast();  // of the root: ClusterState::usage_charged
  uint64_t revision = 0;
  int64_t line = 0, longest_line = 0;  // of Queue
};
std::string EncodeQueueRecord(const StoredQueue& queue);
absl::StatusOr<StoredQueue> DecodeQueueRecord(absl::string_view key, absl::string_view value,
                                              std::string* unknown);

struct StoredNode {
  NodeId id;
  NodeSpec spec;
  NodeStatus status;
  std::vector<HyperNodeId> domains;  // Node::domains
  std::vector<ImageId> images;       // Node::images
  uint64_t revision = 0;
};
std::string EncodeNodeRecord(const NodeSpec& spec, const NodeStatus& status,
                             absl::Span<const HyperNodeId> domains,
                             absl::Span<const ImageId> images, uint64_t revision);
absl::StatusOr<StoredNode> DecodeNodeRecord(absl::string_view key, absl::string_view value,
                                            std::string* unknown);

struct StoredHyperNode {
  HyperNodeId id;
  HyperNodeSpec spec;
  uint64_t revision = 0;
};
std::string EncodeHyperNodeRecord(const HyperNodeSpec& spec, uint64_t revision);
absl::StatusOr<StoredHyperNode> DecodeHyperNodeRecord(absl::string_view key,
                                                      absl::string_view value,
                                                      std::string* unknown);

// The hot part of a job_spec record. Written once, so unknown fields need no special treatment.
struct StoredJob {
  JobId id;
  JobSpec spec;
  Time submit = absl::InfinitePast();
  uint64_t revision = 0;
  RunPrediction prediction;
  LinePlace line;
};
std::string EncodeJobSpecRecord(const JobSpec& spec, Time submit, uint64_t revision,
                                const RunPrediction& prediction, const LinePlace& line,
                                absl::string_view cold);
// The same from a message whose sizes are cached (after ByteSizeLong). Saves the conversion.
std::string EncodeJobSpecRecord(const store::v1::JobSpec& spec, Time submit, uint64_t revision,
                                const RunPrediction& prediction, const LinePlace& line,
                                size_t cold_bytes);
// Ends a job_spec record with its cold part; appends nothing if it is empty.
void AppendCold(absl::string_view cold, std::string* value);
absl::StatusOr<StoredJob> DecodeJobSpecRecord(absl::string_view key, absl::string_view value);
// Only the cold part: the submitter's serialized berth.v1.Job.
// `series`, if not null: the series whose cold part a member has, which has none itself; else 0.
absl::StatusOr<std::string> DecodeCold(absl::string_view key, absl::string_view value,
                                       JobId* series = nullptr);

struct StoredJobStatus {
  JobId id;
  JobStatus status;
  int32_t priority = 0;
  std::map<std::string, std::string> labels;
  Reservation reservation;  // without places if there is none
  uint64_t revision = 0;
  std::optional<Duration> walltime = std::nullopt;  // if it was updated
};
std::string EncodeJobStatusRecord(const JobStatus& status, int32_t priority,
                                  const std::map<std::string, std::string>& labels,
                                  const Reservation& reservation, uint64_t revision,
                                  std::optional<Duration> walltime = std::nullopt);
absl::StatusOr<StoredJobStatus> DecodeJobStatusRecord(absl::string_view key,
                                                      absl::string_view value,
                                                      std::string* unknown);

struct StoredTask {
  TaskKey key;
  Task task;
  std::string message;  // ClusterState::TaskMessage
};
std::string EncodeTaskRecord(const Task& task, absl::string_view message);
absl::StatusOr<StoredTask> DecodeTaskRecord(absl::string_view key, absl::string_view value,
                                            std::string* unknown);

// The response to a request id, to be returned again. The id is the key.
struct StoredRequest {
  std::string id;
  std::string fingerprint;  // of the request's body
  Time time = absl::InfinitePast();
  std::string answer;  // serialized response
};
std::string EncodeRequestRecord(const StoredRequest& request);
absl::StatusOr<StoredRequest> DecodeRequestRecord(absl::string_view key, absl::string_view value,
                                                  std::string* unknown);

// ---- Events

// Fills the body and, if it differs from `turn_time`, the time. TurnRecorder adds names and states
// for watchers.
void EncodeEvent(const Event& event, Time turn_time, store::v1::LogEvent* message);
absl::StatusOr<Event> DecodeEvent(const store::v1::LogEvent& message, Time turn_time);

// A planning cycle that decided nothing, in a turn that changed nothing.
struct QuietCycle {
  Time time = absl::InfinitePast();
  uint64_t budget = 0;
};

// What planning remembered besides the facts when it restarted (StateEditor::ForgetVerdicts).
struct Remembered {
  Time passed_time = absl::InfinitePast();  // ClusterState::passed_time
  std::vector<JobId> unsettled;             // ClusterState::unsettled
};

// One turn of the log.
struct LoggedTurn {
  uint64_t sequence = 0;
  Time time = absl::InfinitePast();
  std::vector<Event> events;
  // For replaying its planning cycle. A budget of 0: no cycle ran.
  uint64_t cycle_budget = 0, cycle_work = 0;
  size_t events_before_cycle = 0;        // of `events`; the rest are the cycle's decisions
  std::string policies;                  // in force from `quiet_cycles` on; empty: unchanged
  std::vector<QuietCycle> quiet_cycles;  // since the previous logged turn, in order
  bool loaded = false;                   // the first logged after a process loaded the state
  std::optional<Remembered> remembered;  // planning restarted, with `policies`
  std::string version;                   // with `loaded`: the version of the program
  std::vector<ActorRange> actors;        // of its commands, in order
};
absl::StatusOr<LoggedTurn> DecodeTurn(absl::string_view turn);
// The message, for watchers. DATA_LOSS if it does not parse.
absl::StatusOr<store::v1::LogTurn> ParseTurn(absl::string_view turn);

}  // namespace berth

#endif  // BERTH_STORAGE_CODEC_H_
