#include "clients/slurm/job_archive.h"

#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "clients/slurm/pages.h"
#include "support/proto_time.h"

namespace berth {
namespace {

using HistoryStub = v1::HistoryService::StubInterface;
constexpr int kUidsOfRequest = 1000;

void SetRequest(const v1::ResourceList& list, v1::ResourceRequest* request) {
  request->set_cpu_millis(list.cpu_millis());
  request->set_memory_bytes(list.memory_bytes());
  request->set_scratch_bytes(list.scratch_bytes());
  for (const auto& [kind, count] : list.counts()) {
    v1::DeviceRequest& device = *request->add_devices();
    device.set_kind(kind);
    const bool whole = count == std::floor(count);
    if (whole) device.set_count(static_cast<int32_t>(count));
    if (!whole) device.set_share(count);
  }
}

// "job-12.3" is index 3 of the array job-12. A job of a schedule has another name, and none of
// Slurm.
void SetMember(const v1::EndedJob& ended, v1::JobStatus* status) {
  const size_t dot = ended.name().rfind('.');
  int64_t index = 0;
  if (ended.series_uid() == 0 || dot == std::string::npos) return;
  if (!absl::SimpleAtoi(ended.name().substr(dot + 1), &index)) return;
  status->mutable_member_of()->set_series(ended.name().substr(0, dot));
  status->mutable_member_of()->set_index(index);
}

void SetStatus(const v1::EndedJob& ended, v1::JobStatus* status) {
  status->set_state(ended.state());
  status->set_message(ended.message());
  status->set_owner(ended.owner());
  status->set_retries(ended.retries());
  status->set_start_count(ended.start_count());
  status->set_evictions(ended.evictions());
  *status->mutable_submit_time() = ended.submit_time();
  if (ended.has_last_start_time()) *status->mutable_start_time() = ended.last_start_time();
  *status->mutable_end_time() = ended.end_time();
  SetMember(ended, status);
}

absl::Status ReadEnded(Client& client, const v1::ListEndedJobsRequest& request,
                       absl::FunctionRef<void(const v1::EndedJob&)> see) {
  const absl::Status status = ReadPages(client, &HistoryStub::ListEndedJobs, request,
                                        [&](const v1::ListEndedJobsResponse& page) {
                                          for (const v1::EndedJob& job : page.jobs()) see(job);
                                        });
  const bool none = absl::IsFailedPrecondition(status) || absl::IsUnimplemented(status);
  return none ? absl::OkStatus() : status;
}

absl::Status ReadNamed(Client& client, const std::string& pattern,
                       absl::FunctionRef<void(ArchivedJob)> see) {
  v1::ListEndedJobsRequest request;
  request.set_name_pattern(pattern);
  return ReadEnded(client, request, [&](const v1::EndedJob& ended) {
    if (!ended.is_series()) see(JobOfHistory(ended));
  });
}

// The arrays among the jobs are added to `arrays`.
absl::Status ReadUids(Client& client, const std::vector<uint64_t>& uids,
                      std::set<std::string>* arrays, absl::FunctionRef<void(ArchivedJob)> see) {
  for (size_t at = 0; at < uids.size();) {
    v1::ListEndedJobsRequest request;
    while (at < uids.size() && request.uids_size() < kUidsOfRequest) request.add_uids(uids[at++]);
    const absl::Status status = ReadEnded(client, request, [&](const v1::EndedJob& ended) {
      if (ended.is_series()) arrays->insert(ended.name());
      if (!ended.is_series()) see(JobOfHistory(ended));
    });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadNumbers(Client& client, const ArchiveQuery& query,
                         absl::FunctionRef<void(ArchivedJob)> see) {
  std::vector<uint64_t> uids;
  std::map<uint64_t, std::set<int64_t>> indexes;  // of arrays
  std::set<std::string> arrays = query.arrays;
  for (const JobNumber& number : query.numbers) {
    if (!number.index.has_value()) uids.push_back(number.uid);
    if (number.index.has_value()) indexes[number.uid].insert(*number.index);
  }
  absl::Status status = ReadUids(client, uids, &arrays, see);
  for (const auto& [uid, wanted] : indexes) {
    if (!status.ok()) return status;
    status = ReadNamed(client, absl::StrCat("job-", uid, ".*"), [&](ArchivedJob job) {
      if (wanted.contains(job.job.status().member_of().index())) see(std::move(job));
    });
  }
  for (const std::string& array : arrays) {
    if (!status.ok()) return status;
    status = ReadNamed(client, absl::StrCat(array, ".*"), see);
  }
  return status;
}

}  // namespace

ArchivedJob JobOfHistory(const v1::EndedJob& ended) {
  ArchivedJob archived;
  v1::Job& job = archived.job;
  job.set_name(ended.name());
  job.set_uid(ended.uid());
  v1::JobSpec& spec = *job.mutable_spec();
  spec.set_queue(ended.queue());
  spec.set_user(ended.user());
  spec.set_priority_class(ended.priority_class());
  *spec.mutable_labels() = ended.labels();
  for (const v1::EndedGroup& of : ended.groups()) {
    v1::TaskGroup& group = *spec.add_groups();
    group.set_name(of.name());
    group.set_replicas(of.replicas());
    SetRequest(of.request(), group.mutable_resources());
  }
  if (spec.groups().empty()) spec.add_groups();  // as every job has
  SetStatus(ended, job.mutable_status());
  archived.exit = {.code = ended.exit_code(), .signal = ended.exit_signal()};
  return archived;
}

absl::Status ReadArchive(Client& client, const ArchiveQuery& query,
                         absl::FunctionRef<void(ArchivedJob)> see) {
  if (query.named()) return ReadNumbers(client, query, see);
  v1::ListEndedJobsRequest request;
  if (query.since.has_value()) ToProto(*query.since, request.mutable_since());
  const auto add = [&](const v1::EndedJob& ended) {
    if (!ended.is_series()) see(JobOfHistory(ended));
  };
  if (query.user.empty()) return ReadEnded(client, request, add);
  // A job has the user that sbatch gave it, or only the owner that its connection proved.
  request.set_user(query.user);
  if (absl::Status status = ReadEnded(client, request, add); !status.ok()) return status;
  request.clear_user();
  request.set_owner(query.user);
  return ReadEnded(client, request, add);
}

}  // namespace berth
