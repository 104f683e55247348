#include "clients/cli/job_history.h"

#include <memory>
#include <string>
#include <vector>

#include "clients/cli/by_name.h"
#include "clients/cli/resource_names.h"
#include "support/proto_json.h"

namespace berth {
namespace {

using JobStub = v1::JobService::StubInterface;

struct HistoryArguments {
  std::string queue;
  std::vector<std::string> labels;
};

v1::ListJobsRequest HistoryRequest(const HistoryArguments& arguments) {
  v1::ListJobsRequest request;
  v1::JobFilter& filter = *request.mutable_filter();
  filter.set_queue(arguments.queue);
  for (const v1::JobState state : {v1::JOB_SUCCEEDED, v1::JOB_FAILED, v1::JOB_CANCELLED}) {
    filter.add_states(state);
  }
  for (const std::string& label : arguments.labels) {
    const auto pair = KeyValueFrom(label);
    (*filter.mutable_labels())[pair.first] = pair.second;
  }
  return request;
}

// Prints page by page, because a history may be long.
absl::Status History(Session& session, const HistoryArguments& arguments) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  return (*client)->List<JobStub, v1::ListJobsRequest, v1::ListJobsResponse>(
      &JobStub::ListJobs, HistoryRequest(arguments), [&](const v1::ListJobsResponse& page) {
        for (const v1::Job& job : page.jobs()) {
          session.out() << WriteJson(job) << "\n";
        }
        return session.out().good();  // false: the reader is gone
      });
}

}  // namespace

void AddJobHistory(CLI::App& noun, Session& session) {
  auto arguments = std::make_shared<HistoryArguments>();
  CLI::App* history = AddCommand(noun, session, "history",
                                 "print ended jobs, one JSON object a line, for berth-sim replay",
                                 [arguments](Session& s) {
                                   s.exact_answers = true;  // JSON escapes by its own rules
                                   return s.Finish(History(s, *arguments));
                                 });
  history->add_option("--queue,-q", arguments->queue, "only jobs of this queue")
      ->transform(NameOf("queue"));
  history->add_option("--label,-l", arguments->labels, "only jobs with this label; may be repeated")
      ->allow_extra_args(false)
      ->check(kIsKeyValue);
}

}  // namespace berth
