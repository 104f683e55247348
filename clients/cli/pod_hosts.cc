#include "clients/cli/pod_hosts.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace berth {
namespace {

constexpr int64_t kMaxNamedTasks = 4096;  // of the server

// What a name of one of the pods begins with: "train-worker-".
std::string Beginning(const std::string& names) {
  return names.substr(0, names.find_last_of('-', names.find('[')) + 1);
}

// "train-worker-0", or "train-worker-$i" in a script.
bool NamesPod(const std::string& text, const std::string& beginning) {
  for (size_t at = text.find(beginning); at != std::string::npos;
       at = text.find(beginning, at + 1)) {
    const size_t end = at + beginning.size();
    const bool begins =
        at == 0 ||
        !(absl::ascii_isalnum(static_cast<unsigned char>(text[at - 1])) || text[at - 1] == '-');
    if (!begins || end >= text.size()) continue;
    if (absl::ascii_isdigit(static_cast<unsigned char>(text[end])) || text[end] == '$') return true;
  }
  return false;
}

template <class Process>
bool AnyTextOf(const Process& process, absl::FunctionRef<bool(const std::string&)> test) {
  const auto& words = process.command();
  const auto& args = process.args();
  if (std::any_of(words.begin(), words.end(), test)) return true;
  if (std::any_of(args.begin(), args.end(), test)) return true;
  for (const v1::EnvVar& variable : process.env()) {
    if (test(variable.value())) return true;
  }
  for (const v1::Volume& volume : process.volumes()) {
    for (const v1::VolumeFile& file : volume.files().files()) {
      if (test(file.content())) return true;
    }
  }
  return false;
}

}  // namespace

std::string PodNames(const std::string& begin, int64_t count) {
  return count <= 1 ? absl::StrCat(begin, "0") : absl::StrCat(begin, "[0-", count - 1, "]");
}

bool AnyText(const v1::JobSpec& spec, absl::FunctionRef<bool(const std::string&)> test) {
  for (const v1::TaskGroup& group : spec.groups()) {
    if (AnyTextOf(group, test)) return true;
    for (const v1::Container& container : group.containers()) {
      if (AnyTextOf(container, test)) return true;
    }
  }
  return false;
}

bool GiveHostNames(const std::string& path, const std::vector<PodHosts>& pods,
                   const std::string& space, bool always, ForeignJob* job) {
  if (job->manifest().job.name().empty()) return false;
  const bool used = AnyText(job->spec(), [&](const std::string& text) {
    return std::any_of(pods.begin(), pods.end(),
                       [&](const PodHosts& one) { return NamesPod(text, Beginning(one.names)); });
  });
  if (!used && !always) return false;
  int64_t tasks = 0;
  for (const v1::TaskGroup& group : job->spec().groups()) tasks += group.replicas();
  if (tasks > kMaxNamedTasks) {
    const std::string text = absl::StrCat("host names of pods: only for up to ", kMaxNamedTasks,
                                          " tasks, this job has ", tasks);
    used ? job->document().Error(path, text) : job->document().Warn(path, text);
    return false;
  }
  for (const PodHosts& one : pods) {
    v1::TaskGroup& group = *job->spec().mutable_groups(one.group);
    if (group.replicas() < 1) continue;
    const std::string in = one.subdomain.empty() ? "" : absl::StrCat(".", one.subdomain);
    const std::string of = absl::StrCat(in, ".", space.empty() ? "default" : space, ".svc");
    group.add_host_names(one.names);
    if (!in.empty()) group.add_host_names(one.names + in);
    if (!one.service.empty()) {
      group.add_host_names(one.service);
    } else {
      group.add_host_names(one.names + of);
      group.add_host_names(one.names + of + ".cluster.local");
    }
    job->Place(absl::StrCat("spec.groups[", one.group, "].host_names"), path);
  }
  return true;
}

}  // namespace berth
