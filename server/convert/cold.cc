#include "server/convert/cold.h"

#include "absl/strings/str_cat.h"

namespace berth {
namespace {

void CopyColdFields(const v1::TaskGroup& from, v1::TaskGroup* to) {
  *to->mutable_command() = from.command();
  *to->mutable_env() = from.env();
  to->set_working_dir(from.working_dir());
  to->set_image(from.image());
  *to->mutable_args() = from.args();
  to->set_image_pull_policy(from.image_pull_policy());
  to->set_registry_auth(from.registry_auth());
  *to->mutable_volumes() = from.volumes();
  to->set_terminal(from.terminal());
  *to->mutable_containers() = from.containers();
  *to->mutable_host_names() = from.host_names();
  *to->mutable_communication() = from.communication();  // besides its weight, which is hot
}

void CopyColdFields(const v1::JobSpec& from, v1::JobSpec* to) {
  *to->mutable_annotations() = from.annotations();
  to->set_kill_signal(from.kill_signal());
  to->set_run_as(from.run_as());
  if (from.has_watchdog()) {  // besides what is hot
    if (from.watchdog().has_start())
      *to->mutable_watchdog()->mutable_start() = from.watchdog().start();
    to->mutable_watchdog()->set_dump_signal(from.watchdog().dump_signal());
  }
  if (from.has_idle()) *to->mutable_idle() = from.idle();
  if (from.has_interactive()) *to->mutable_interactive() = from.interactive();
  to->set_migration(from.migration());
  if (from.has_keep()) *to->mutable_keep() = from.keep();
  const bool has_any = !from.checkpoint().signal().empty() || from.checkpoint().has_grace() ||
                       !from.checkpoint().before().empty();
  if (!has_any) return;
  v1::CheckpointPolicy* checkpoint = to->mutable_checkpoint();  // besides what is hot
  checkpoint->set_signal(from.checkpoint().signal());
  *checkpoint->mutable_before() = from.checkpoint().before();
  if (from.checkpoint().has_grace()) *checkpoint->mutable_grace() = from.checkpoint().grace();
}

}  // namespace

std::string EncodeCold(const v1::JobSpec& spec) {
  thread_local v1::JobSpec cold;  // keeps its strings' memory between jobs
  cold.Clear();
  CopyColdFields(spec, &cold);
  for (const v1::TaskGroup& group : spec.groups()) CopyColdFields(group, cold.add_groups());
  return cold.SerializeAsString();
}

absl::Status ParseCold(absl::string_view cold, v1::JobSpec* spec) {
  if (spec->ParseFromArray(cold.data(), static_cast<int>(cold.size()))) return absl::OkStatus();
  return absl::DataLossError("the stored command and environment are unreadable");
}

absl::Status MergeCold(absl::string_view cold, v1::JobSpec* spec) {
  v1::JobSpec parsed;
  if (absl::Status status = ParseCold(cold, &parsed); !status.ok()) return status;
  if (parsed.groups_size() != spec->groups_size()) {
    return absl::DataLossError(absl::StrCat("the stored command and environment have ",
                                            parsed.groups_size(), " groups, the job has ",
                                            spec->groups_size()));
  }
  CopyColdFields(parsed, spec);
  for (int i = 0; i < spec->groups_size(); ++i) {
    CopyColdFields(parsed.groups(i), spec->mutable_groups(i));
  }
  return absl::OkStatus();
}

}  // namespace berth
