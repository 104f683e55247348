// Host names of pods: other schedulers put them into DNS, Berth into the hosts files of tasks
// (TaskGroup.host_names).
#ifndef BERTH_CLIENTS_CLI_POD_HOSTS_H_
#define BERTH_CLIENTS_CLI_POD_HOSTS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "clients/cli/foreign_document.h"

namespace berth {

// The pods of one group of the job.
struct PodHosts {
  int group = 0;
  std::string names;      // the pods', as a pattern: "train-worker-[0-3]"
  std::string subdomain;  // "train": they are also "train-worker-[0-3].train"; may be empty
  std::string service;    // one more name of a single pod; may be empty
};

// "train-worker-[0-3]", or "train-worker-0" for one pod.
std::string PodNames(const std::string& begin, int64_t count);

// Gives the groups these names, also in the domains of `space` ("": default), if `always`, or if a
// command, variable or file of the job has one of them. More tasks than Berth names are an error
// in the latter case, and a warning at `path` in the former. Returns whether they have the names.
bool GiveHostNames(const std::string& path, const std::vector<PodHosts>& pods,
                   const std::string& space, bool always, ForeignJob* job);

// Whether `test` holds for a word of a command, a value of a variable, or a file of the job.
bool AnyText(const v1::JobSpec& spec, absl::FunctionRef<bool(const std::string&)> test);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_POD_HOSTS_H_
