#include "clients/slurm/job_json.h"

#include "clients/slurm/allocation.h"
#include "clients/slurm/hosts.h"
#include "clients/slurm/job_end.h"
#include "clients/slurm/job_label.h"
#include "clients/slurm/job_state.h"
#include "clients/slurm/json.h"
#include "support/proto_time.h"

namespace berth {
namespace {

int64_t SecondsOf(bool has, const google::protobuf::Timestamp& time) {
  return has ? time.seconds() : 0;
}

std::string NoteOf(const JobRow& row, const char* key) {
  const auto found = row.job.spec().annotations().find(key);
  return found == row.job.spec().annotations().end() ? "" : found->second;
}

// A field of squeue or sacct, by the letter of squeue.
std::string FieldText(const JobRow& row, const FieldContext& in, char letter) {
  for (const JobField& field : JobFields()) {
    if (field.letter == letter) return field.text(row, in);
  }
  return "";
}

int64_t CountIn(const std::string& text) {
  int64_t number = 0;
  return absl::SimpleAtoi(text, &number) ? number : 0;
}

Json ExitAsJson(const JobRow& row) {
  const JobExit exit = row.archived.has_value() ? *row.archived : ExitOf(row.tasks);
  const bool ended = StateOf(row.job).ended;
  const char* status = !ended             ? "PENDING"
                       : exit.signal != 0 ? "SIGNALED"
                       : exit.code == 0   ? "SUCCESS"
                                          : "ERROR";
  return JsonObject({{"status", JsonList(std::vector<Json>{status})},
                     {"return_code", ended ? SetNumber(exit.code) : UnsetNumber()},
                     {"signal", JsonObject({{"id", exit.signal != 0 ? SetNumber(exit.signal)
                                                                    : UnsetNumber()}})}});
}

Json LimitAsJson(const JobRow& row) {
  if (row.archived.has_value()) return UnsetNumber();
  if (!row.job.spec().has_walltime()) return UnsetNumber(true);
  return SetNumber(row.job.spec().walltime().seconds() / 60);
}

Json ArrayIndexAsJson(const JobRow& row) {
  if (ArrayOf(row.job) == 0) return UnsetNumber();
  return SetNumber(row.job.status().member_of().index());
}

Json QueueJob(const JobRow& row, const FieldContext& in) {
  const v1::JobStatus& status = row.job.status();
  const auto uid = static_cast<int64_t>(row.job.uid());
  const auto array = static_cast<int64_t>(ArrayOf(row.job));
  const std::vector<std::string> nodes = row.Nodes();
  return JsonObject(
      {{"job_id", uid},
       {"array_job_id", array != 0           ? SetNumber(array)
                        : row.unmade.empty() ? SetNumber(0)
                                             : SetNumber(uid)},
       {"array_task_id", ArrayIndexAsJson(row)},
       {"array_task_string", row.unmade},
       {"name", JobNameOf(row.job)},
       {"user_name", UserOf(row.job)},
       {"account", TextLabel(row.job.spec(), kAccountLabel)},
       {"partition", PartitionOf(row.job)},
       {"qos", FieldText(row, in, 'q')},
       {"cluster", in.cluster},
       {"job_state", JsonList(std::vector<Json>{StateOf(row.job).name})},
       {"state_reason", ReasonOf(row.job)},
       {"nodes", CompressHosts(nodes)},
       {"node_count", SetNumber(CountIn(FieldText(row, in, 'D')))},
       {"cpus", SetNumber(CountIn(FieldText(row, in, 'C')))},
       {"batch_host", nodes.empty() ? "" : nodes.front()},
       {"priority", SetNumber(row.job.spec().priority())},
       {"submit_time", SetNumber(SecondsOf(true, status.submit_time()))},
       {"start_time", SetNumber(SecondsOf(status.has_start_time(), status.start_time()))},
       {"end_time", SetNumber(SecondsOf(status.has_end_time(), status.end_time()))},
       {"time_limit", LimitAsJson(row)},
       {"restart_cnt",
        static_cast<int64_t>(status.start_count() > 0 ? status.start_count() - 1 : 0)},
       {"exit_code", ExitAsJson(row)},
       {"dependency", row.job.spec().dependencies().empty() ? "" : FieldText(row, in, 'E')},
       {"comment", NoteOf(row, kCommentAnnotation)},
       {"command", NoteOf(row, kCommandAnnotation)},
       {"current_working_directory", NoteOf(row, kDirectoryAnnotation)},
       {"standard_output", NoteOf(row, kOutputAnnotation)},
       {"standard_error", NoteOf(row, kErrorAnnotation)}});
}

Json AccountJob(const JobRow& row, const FieldContext& in) {
  const v1::JobStatus& status = row.job.status();
  const auto array = static_cast<int64_t>(ArrayOf(row.job));
  const int64_t start = SecondsOf(status.has_start_time(), status.start_time());
  const int64_t end = SecondsOf(status.has_end_time(), status.end_time());
  const int64_t until = end != 0 ? end : absl::ToUnixSeconds(in.now);
  return JsonObject(
      {{"job_id", static_cast<int64_t>(row.job.uid())},
       {"array",
        JsonObject({{"job_id", array}, {"task_id", ArrayIndexAsJson(row)}, {"task", row.unmade}})},
       {"name", JobNameOf(row.job)},
       {"user", UserOf(row.job)},
       {"account", TextLabel(row.job.spec(), kAccountLabel)},
       {"partition", PartitionOf(row.job)},
       {"qos", FieldText(row, in, 'q')},
       {"cluster", in.cluster},
       {"state", JsonObject({{"current", JsonList(std::vector<Json>{StateOf(row.job).name})},
                             {"reason", ReasonOf(row.job)}})},
       {"exit_code", ExitAsJson(row)},
       {"nodes", CompressHosts(row.Nodes())},
       {"allocation_nodes", CountIn(FieldText(row, in, 'D'))},
       {"priority",
        row.archived.has_value() ? UnsetNumber() : SetNumber(row.job.spec().priority())},
       {"time", JsonObject({{"submission", SecondsOf(true, status.submit_time())},
                            {"start", start},
                            {"end", end},
                            {"elapsed", start == 0 ? int64_t{0} : until - start},
                            {"limit", LimitAsJson(row)}})},
       {"restart_cnt",
        static_cast<int64_t>(status.start_count() > 0 ? status.start_count() - 1 : 0)},
       {"comment", JsonObject({{"job", NoteOf(row, kCommentAnnotation)}})},
       {"working_directory", NoteOf(row, kDirectoryAnnotation)},
       {"submit_line", NoteOf(row, kCommandAnnotation)},
       {"steps", JsonList(std::vector<Json>{})}});
}

}  // namespace

std::string JobsAsJson(const std::vector<JobRow>& rows, const FieldContext& in) {
  std::vector<Json> jobs;
  for (const JobRow& row : rows)
    jobs.push_back(in.accounting ? AccountJob(row, in) : QueueJob(row, in));
  return JsonObject(
             {{"jobs", JsonList(jobs)},
              {"meta",
               JsonObject({{"slurm", JsonObject({{"release", "23.11.0"}, {"cluster", in.cluster}})},
                           {"program", "berth"}})},
              {"errors", JsonList(std::vector<Json>{})},
              {"warnings", JsonList(std::vector<Json>{})}})
      .text;
}

}  // namespace berth
