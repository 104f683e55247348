#include "storage/load.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/fields.h"
#include "core/model/state_editor.h"
#include "storage/keys.h"

namespace berth {
namespace {

// Takes records in the order of their kinds, so that references point to earlier records.
class Loader {
 public:
  Loader(ClusterState& state, absl::FunctionRef<void(StoredRequest)> request, Preserved* preserved)
      : editor_(state), request_(request), preserved_(preserved) {}

  absl::Status Take(RecordKind kind, absl::string_view key, absl::string_view value) {
    absl::Status status = Dispatch(kind, key, value);
    if (!unknown_.empty() && preserved_ != nullptr) {
      preserved_->Keep(kind, key, std::exchange(unknown_, {}));
    }
    return status;
  }

  // Ids and access rules are checked against all records, so they come last.
  absl::StatusOr<LoadSummary> Finish() {
    if (absl::Status status = editor_.LoadAccess(access_); !status.ok()) {
      return AsDataLoss(status, RecordKind::kMeta, kAccessKey);
    }
    for (const auto& [node, domains] : domains_) {
      absl::Status status = editor_.LoadNodeDomains(node, domains);
      if (!status.ok()) return AsDataLoss(status, RecordKind::kNode, NodeKey(node));
    }
    if (has_ids_) {
      absl::Status status = editor_.LoadNextIds(ids_.job, ids_.node, ids_.queue, ids_.hyper_node);
      if (!status.ok()) return AsDataLoss(status, RecordKind::kMeta, kNextIdsKey);
    }
    editor_.FinishLoad();
    return summary_;
  }

 private:
  static absl::Status AsDataLoss(const absl::Status& status, RecordKind kind,
                                 absl::string_view key) {
    if (status.ok()) return status;
    return NameRecord(absl::DataLossError(status.message()), kind, key);
  }

  absl::Status Dispatch(RecordKind kind, absl::string_view key, absl::string_view value) {
    switch (kind) {
      case RecordKind::kMeta:
        return TakeMeta(key, value);
      case RecordKind::kQueue:
        return TakeQueue(key, value);
      case RecordKind::kNode:
        return TakeNode(key, value);
      case RecordKind::kJobSpec:
        return TakeJob(key, value);
      case RecordKind::kJobStatus:
        return TakeJobStatus(key, value);
      case RecordKind::kTask:
        return TakeTask(key, value);
      case RecordKind::kRequest:
        return TakeRequest(key, value);
      case RecordKind::kHyperNode:
        return TakeHyperNode(key, value);
      case RecordKind::kLog:
        break;
    }
    return AsDataLoss(absl::DataLossError("records of a kind that this version does not use"), kind,
                      key);
  }

  absl::Status TakeMeta(absl::string_view key, absl::string_view value) {
    if (key == kRequestMixKey) {
      absl::StatusOr<RequestMix> mix = DecodeRequestMix(value, &unknown_);
      if (!mix.ok()) return mix.status();
      return AsDataLoss(editor_.LoadRequestMix(*std::move(mix)), RecordKind::kMeta, key);
    }
    if (key == kAccessKey) {
      absl::StatusOr<AccessChange> access = DecodeAccessRecord(value, &unknown_);
      if (!access.ok()) return access.status();
      access_ = *std::move(access);
      return absl::OkStatus();
    }
    if (key == kPriorityClassesKey) {
      absl::StatusOr<PriorityClassChange> classes = DecodePriorityClasses(value, &unknown_);
      if (!classes.ok()) return classes.status();
      return AsDataLoss(editor_.LoadPriorityClasses(*classes), RecordKind::kMeta, key);
    }
    if (absl::StartsWith(key, kRunKeys)) {
      absl::StatusOr<StoredRun> run = DecodeRunRecord(key, value, &unknown_);
      if (!run.ok()) return run.status();
      return AsDataLoss(editor_.LoadRun(run->id, std::move(run->run)), RecordKind::kMeta, key);
    }
    if (key != kNextIdsKey) return absl::OkStatus();  // written by a newer version
    absl::StatusOr<NextIds> ids = DecodeNextIds(value, &unknown_);
    if (!ids.ok()) return ids.status();
    ids_ = *ids;
    has_ids_ = true;
    return absl::OkStatus();
  }

  static_assert(kFields<StoredQueue> == 8, "load the new field");
  absl::Status TakeQueue(absl::string_view key, absl::string_view value) {
    absl::StatusOr<StoredQueue> queue = DecodeQueueRecord(key, value, &unknown_);
    if (!queue.ok()) return queue.status();
    ++summary_.queues;
    absl::Status loaded =
        editor_.LoadQueue(queue->id, std::move(queue->spec), queue->open, queue->revision);
    if (loaded.ok()) loaded = editor_.LoadQueueUsage(queue->id, std::move(queue->usage));
    if (loaded.ok()) loaded = editor_.LoadQueueLine(queue->id, queue->line, queue->longest_line);
    if (queue->id == kRootQueue) editor_.LoadUsageCharged(queue->usage_charged);
    return AsDataLoss(loaded, RecordKind::kQueue, key);
  }

  static_assert(kFields<StoredNode> == 6, "load the new field");
  absl::Status TakeNode(absl::string_view key, absl::string_view value) {
    absl::StatusOr<StoredNode> node = DecodeNodeRecord(key, value, &unknown_);
    if (!node.ok()) return node.status();
    ++summary_.nodes;
    if (!node->domains.empty()) domains_.emplace_back(node->id, std::move(node->domains));
    absl::Status loaded =
        editor_.LoadNode(node->id, std::move(node->spec), std::move(node->status), node->revision);
    if (loaded.ok()) loaded = editor_.LoadNodeImages(node->id, std::move(node->images));
    return AsDataLoss(loaded, RecordKind::kNode, key);
  }

  static_assert(kFields<StoredHyperNode> == 3, "load the new field");
  absl::Status TakeHyperNode(absl::string_view key, absl::string_view value) {
    absl::StatusOr<StoredHyperNode> domain = DecodeHyperNodeRecord(key, value, &unknown_);
    if (!domain.ok()) return domain.status();
    ++summary_.hyper_nodes;
    return AsDataLoss(editor_.LoadHyperNode(domain->id, std::move(domain->spec), domain->revision),
                      RecordKind::kHyperNode, key);
  }

  static_assert(kFields<StoredJob> == 6, "load the new field");
  absl::Status TakeJob(absl::string_view key, absl::string_view value) {
    absl::StatusOr<StoredJob> job = DecodeJobSpecRecord(key, value);
    if (!job.ok()) return job.status();
    ++summary_.jobs;
    return AsDataLoss(
        editor_.LoadJob(job->id, job->spec, job->submit, job->revision, job->prediction, job->line),
        RecordKind::kJobSpec, key);
  }

  static_assert(kFields<StoredJobStatus> == 7, "load the new field");
  absl::Status TakeJobStatus(absl::string_view key, absl::string_view value) {
    absl::StatusOr<StoredJobStatus> status = DecodeJobStatusRecord(key, value, &unknown_);
    if (!status.ok()) return status.status();
    ++summary_.job_statuses;
    absl::Status loaded;
    if (status->walltime.has_value()) {
      loaded = editor_.LoadWalltime(status->id, *status->walltime);
      if (!loaded.ok()) return AsDataLoss(loaded, RecordKind::kJobStatus, key);
    }
    loaded = editor_.LoadJobStatus(status->id, std::move(status->status), status->priority,
                                   std::move(status->labels), status->revision);
    if (loaded.ok()) loaded = editor_.LoadReservation(status->id, std::move(status->reservation));
    return AsDataLoss(loaded, RecordKind::kJobStatus, key);
  }

  static_assert(kFields<StoredTask> == 3, "load the new field");
  absl::Status TakeTask(absl::string_view key, absl::string_view value) {
    absl::StatusOr<StoredTask> task = DecodeTaskRecord(key, value, &unknown_);
    if (!task.ok()) return task.status();
    ++summary_.tasks;
    return AsDataLoss(editor_.LoadTask(task->key, task->task, task->message), RecordKind::kTask,
                      key);
  }

  absl::Status TakeRequest(absl::string_view key, absl::string_view value) {
    absl::StatusOr<StoredRequest> request = DecodeRequestRecord(key, value, &unknown_);
    if (!request.ok()) return request.status();
    ++summary_.requests;
    request_(*std::move(request));
    return absl::OkStatus();
  }

  StateEditor editor_;
  absl::FunctionRef<void(StoredRequest)> request_;
  Preserved* const preserved_;
  std::string unknown_;
  std::vector<std::pair<NodeId, std::vector<HyperNodeId>>> domains_;  // HyperNodes load later
  AccessChange access_;
  NextIds ids_;
  bool has_ids_ = false;
  LoadSummary summary_;
};

}  // namespace

absl::StatusOr<LoadSummary> LoadState(Store& store, ClusterState& state,
                                      absl::FunctionRef<void(StoredRequest)> request,
                                      Preserved* preserved) {
  Loader loader(state, request, preserved);
  absl::Status status =
      store.Load([&](RecordKind kind, absl::string_view key, absl::string_view value) {
        return loader.Take(kind, key, value);
      });
  if (!status.ok()) return status;
  return loader.Finish();
}

absl::StatusOr<uint64_t> FirstLogged(const Store& store) {
  uint64_t before = 0;                        // deleted
  uint64_t there = store.LastSequence() + 1;  // kept, or not written yet
  while (there - before > 1) {
    const uint64_t middle = before + (there - before) / 2;
    const auto entry = store.ReadLog(middle - 1, 1);
    if (!entry.ok() && !absl::IsOutOfRange(entry.status())) return entry.status();
    (entry.ok() ? there : before) = middle;
  }
  return there;
}

absl::StatusOr<uint64_t> LoadEarliest(Store& store, ClusterState& state) {
  const absl::StatusOr<uint64_t> first = FirstLogged(store);
  if (!first.ok()) return first.status();
  if (*first == 1) return uint64_t{0};
  const absl::StatusOr<std::vector<uint64_t>> bases = store.Bases();
  if (!bases.ok()) return bases.status();
  for (uint64_t base : *bases) {
    if (base + 1 < *first) continue;
    const auto no_requests = [](StoredRequest) {};
    Loader loader(state, no_requests, nullptr);
    absl::Status status =
        store.LoadBase(base, [&](RecordKind kind, absl::string_view key, absl::string_view value) {
          return loader.Take(kind, key, value);
        });
    if (status.ok()) status = loader.Finish().status();
    if (!status.ok()) return status;
    return base;
  }
  return absl::NotFoundError(
      absl::StrCat("the log begins with batch ", *first, ", and there is no base to begin with"));
}

}  // namespace berth
