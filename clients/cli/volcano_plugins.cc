#include "clients/cli/volcano_plugins.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/kubernetes_text.h"

namespace berth {
namespace {

struct PluginMeaning {
  const char* name;
  const char* text;
};
constexpr PluginMeaning kPlugins[] = {
    {"env",
     "env: VC_TASK_INDEX is BERTH_GROUP_INDEX; the program env in front of the command sets it"},
    {"svc", "svc: the hosts of all tasks are in the file BERTH_HOSTFILE of each task"},
    {"ssh", "ssh: there are no keys; see \"MPI without ssh\" in Berth's examples"},
    {"mpi", "mpi: the hosts are in BERTH_HOSTFILE; see \"MPI without ssh\" in Berth's examples"},
    {"pytorch", "pytorch: MASTER_ADDR and MASTER_PORT are those of rank 0, whatever it says"},
};

// What plugins give to tasks of Volcano, and nobody gives here: a name of a variable, or a part of
// a path. "" if the text has none.
std::string PluginsGift(absl::string_view text) {
  constexpr absl::string_view kDirectory = "/etc/volcano/";
  if (absl::StrContains(text, kDirectory)) return std::string(kDirectory);
  for (size_t end = 0; end < text.size();) {
    const absl::string_view name = NextName(text, &end);
    const bool of_svc = absl::StartsWith(name, "VC_") &&
                        (absl::EndsWith(name, "_HOSTS") || absl::EndsWith(name, "_NUM"));
    if (of_svc || name == "MPI_HOST" || name == "TF_CONFIG") return std::string(name);
  }
  return "";
}

// "train-worker-0.train": the host name of a pod, with the plugin svc. "" if the text has none.
std::string PodHost(absl::string_view text, const volcano::v1::JobSpec& spec,
                    const std::string& job_name) {
  if (job_name.empty()) return "";
  for (const auto& task : spec.tasks()) {
    const std::string begin = absl::StrCat(job_name, "-", task.name(), "-");
    const size_t at = text.find(begin);
    size_t end = at == absl::string_view::npos ? at : at + begin.size();
    while (end < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[end]))) ++end;
    if (at == absl::string_view::npos || end == at + begin.size()) continue;
    const std::string domain = absl::StrCat(".", job_name);
    if (absl::StartsWith(text.substr(end), domain))
      return std::string(text.substr(at, end - at + domain.size()));
  }
  return "";
}

}  // namespace

void WarnAboutPlugins(const std::string& path, const volcano::v1::JobSpec& spec,
                      ForeignDocument* document) {
  const auto* plugins = spec.plugins().GetDescriptor();
  for (int i = 0; i < plugins->field_count(); ++i) {
    const std::string name(plugins->field(i)->name());
    const std::string plugin = absl::StrCat(path, ".plugins.", name);
    if (!document->Has(plugin)) continue;
    for (const PluginMeaning& known : kPlugins) {
      if (name == known.name) document->Warn(plugin, known.text);
    }
  }
}

void CheckPluginUses(const std::string& path, const volcano::v1::JobSpec& spec,
                     const std::string& job_name, ForeignDocument* document) {
  const auto check = [&](const std::string& where, const std::string& text) {
    std::string gift = PluginsGift(text);
    if (gift.empty()) gift = PodHost(text, spec, job_name);
    if (gift.empty()) return;
    document->Error(where, absl::StrCat("there is no ", gift,
                                        ": the hosts are in the file $BERTH_HOSTFILE, the ranks in "
                                        "RANK and WORLD_SIZE"));
  };
  for (int i = 0; i < spec.tasks_size(); ++i) {
    const auto& containers = spec.tasks(i).template_().spec().containers();
    for (int c = 0; c < containers.size(); ++c) {
      const std::string where =
          absl::StrCat(path, ".tasks[", i, "].template.spec.containers[", c, "]");
      for (const std::string& word : containers[c].command()) check(where + ".command", word);
      for (const std::string& word : containers[c].args()) check(where + ".args", word);
      for (const auto& one : containers[c].env()) check(where + ".env", one.value());
    }
  }
}

}  // namespace berth
