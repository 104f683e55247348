// Orders as messages to agents.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/controllers/launch.h"
#include "server/convert/job.h"
#include "server/convert/values.h"

namespace berth {
namespace {

void SetKey(const LaunchOrder& order, v1::TaskKey* key) {
  key->set_job_uid(order.job->id.value);
  key->set_task(order.task);
  key->set_attempt(order.attempt);
}

void SetRanks(const LaunchOrder& order, v1::TaskLaunch* launch) {
  const Ranks& ranks = order.job->ranks;
  const TaskRank& rank = ranks.tasks[order.task];
  launch->set_epoch(order.gang_epoch);
  launch->set_rigid(order.job->group_rigid[order.group]);
  launch->set_coordinator(order.job->coordinator == order.group);
  launch->set_elsewhere(order.job->coordinator.has_value() && !launch->coordinator());
  launch->set_hosts(rank.rank > 0 && ranks.master == order.task);
  launch->set_least_world(order.job->least_world);
  launch->set_most_world(order.job->most_world);
  launch->set_world_size(order.world > 0 ? order.world : ranks.world_size);
  launch->set_rank(rank.rank);
  if (rank.rank < 0) return;
  launch->set_node_rank(rank.node_rank);
  launch->set_node_count(static_cast<int32_t>(ranks.nodes.size()));
  launch->set_local_rank(rank.local_rank);
  launch->set_local_world_size(ranks.node_members[static_cast<size_t>(rank.node_rank)]);
}

void SetWatchdog(absl::Duration timeout, const v1::Watchdog& cold, v1::Watchdog* watchdog) {
  ToProto(timeout, watchdog->mutable_timeout());
  ToProto(cold.has_start() ? DurationFrom(cold.start()) : std::max(timeout, kDefaultWatchdogStart),
          watchdog->mutable_start());
}

void SetIdleRule(const v1::IdleRule& cold, v1::IdleRule* idle) {
  idle->set_devices(cold.devices() > 0 ? cold.devices() : kDefaultIdlePercent);
  ToProto(cold.has_for_() ? DurationFrom(cold.for_()) : kDefaultIdleTime, idle->mutable_for_());
}

void SetImage(const LaunchJob& job, const v1::TaskGroup& group, v1::TaskLaunch* launch) {
  launch->set_image(group.image());
  launch->set_image_pull_policy(group.image_pull_policy());
  launch->set_registry_auth(group.registry_auth());
  const auto digest = job.images.find(group.image());
  if (digest != job.images.end()) launch->set_image_digest(digest->second);
}

void SetContainers(const LaunchJob& job, const v1::TaskGroup& group, v1::TaskLaunch* launch) {
  *launch->mutable_containers() = group.containers();
  for (const v1::Container& container : group.containers()) {
    const auto digest = job.images.find(container.image());
    if (digest == job.images.end()) continue;
    v1::ImageDigest& image = *launch->add_container_images();
    image.set_image(digest->first);
    image.set_digest(digest->second);
  }
}

void SetPrefetch(const LaunchOrder& order, const v1::JobSpec& cold, v1::Prefetch* prefetch) {
  prefetch->set_job_uid(order.job->id.value);
  v1::TaskLaunch* launch = prefetch->mutable_launch();
  launch->set_job(order.job->name);
  launch->set_queue(order.job->queue);
  launch->set_run_as(cold.run_as());
  SetImage(*order.job, cold.groups(static_cast<int>(order.group)), launch);
}

void SetInteractive(const v1::Interactive& cold, v1::Interactive* interactive) {
  *interactive = cold;
  if (cold.action() == v1::Interactive::ACTION_UNSPECIFIED)
    interactive->set_action(v1::Interactive::END);
}

void SetHostNames(const LaunchJob& job, const v1::JobSpec& cold, v1::TaskLaunch* launch) {
  uint32_t first_task = 0;
  for (int g = 0; g < cold.groups_size(); ++g) {
    if (!cold.groups(g).host_names().empty()) {
      v1::HostNames& names = *launch->add_host_names();
      names.set_first_task(first_task);
      *names.mutable_names() = cold.groups(g).host_names();
    }
    first_task += static_cast<uint32_t>(job.group_sizes[static_cast<size_t>(g)]);
  }
}

// Where the members are; a coordinator, who is none, has the place behind all others.
void SetTaskNodes(const LaunchJob& job, v1::Start* start) {
  uint32_t coordinator = UINT32_MAX;
  if (job.coordinator.has_value()) {
    coordinator = 0;
    for (uint32_t g = 0; g < *job.coordinator; ++g)
      coordinator += static_cast<uint32_t>(job.group_sizes[g]);
  }
  for (uint32_t i = 0; i < job.ranks.tasks.size(); ++i) {
    const TaskRank& rank = job.ranks.tasks[i];
    uint32_t place = rank.rank < 0 ? 0 : static_cast<uint32_t>(rank.node_rank) + 1;
    if (i == coordinator && !job.master_address.empty())
      place = static_cast<uint32_t>(job.node_names.size()) + 1;
    start->add_task_nodes(place);
  }
}

bool HaveHostNames(const v1::JobSpec& cold) {
  return std::any_of(cold.groups().begin(), cold.groups().end(),
                     [](const v1::TaskGroup& group) { return !group.host_names().empty(); });
}

void SetLaunch(const LaunchOrder& order, const v1::JobSpec& cold, uint32_t first_task,
               v1::TaskLaunch* launch) {
  const LaunchJob& job = *order.job;
  launch->set_job(job.name);
  launch->set_queue(job.queue);
  launch->set_group(job.group_names[order.group]);
  launch->set_index(static_cast<int32_t>(order.task - first_task));
  launch->set_group_size(job.group_sizes[order.group]);
  SetRanks(order, launch);
  launch->set_cpu_millis(order.cpu_millis);
  launch->set_memory_bytes(order.memory_bytes);
  launch->mutable_device_uuids()->Assign(order.device_uuids.begin(), order.device_uuids.end());
  launch->mutable_device_kinds()->Assign(order.device_kinds.begin(), order.device_kinds.end());
  launch->mutable_device_shares()->Assign(order.device_shares.begin(), order.device_shares.end());
  launch->mutable_device_memory_shares()->Assign(order.device_memory_shares.begin(),
                                                 order.device_memory_shares.end());
  launch->set_scratch_bytes(order.scratch_bytes);
  launch->set_cpuset(order.near.cpus);
  launch->mutable_memory_nodes()->Assign(order.near.memory_nodes.begin(),
                                         order.near.memory_nodes.end());
  launch->set_fence(job.fence);
  if (job.walltime != absl::InfiniteDuration()) {
    ToProto(job.walltime, launch->mutable_walltime());
  }
  launch->set_restart_count(job.restart_count);
  launch->set_kill_signal(cold.kill_signal());
  const v1::TaskGroup& group = cold.groups(static_cast<int>(order.group));
  *launch->mutable_command() = group.command();
  for (const v1::EnvVar& variable : job.env) *launch->add_env() = variable;
  launch->mutable_env()->MergeFrom(group.env());
  launch->set_working_dir(group.working_dir());
  *launch->mutable_args() = group.args();
  SetImage(job, group, launch);
  SetContainers(job, group, launch);
  SetHostNames(job, cold, launch);
  *launch->mutable_volumes() = group.volumes();
  launch->set_terminal(group.terminal());
  launch->set_run_as(cold.run_as());
  launch->set_keep_memory(cold.keep().memory());
  launch->set_keep_disk(cold.keep().disk());
  if (cold.has_idle() && !order.device_uuids.empty()) {
    SetIdleRule(cold.idle(), launch->mutable_idle());
  }
  if (cold.has_interactive()) SetInteractive(cold.interactive(), launch->mutable_interactive());
  if (job.watchdog != absl::InfiniteDuration() && !launch->coordinator()) {
    SetWatchdog(job.watchdog, cold.watchdog(), launch->mutable_watchdog());
  }
}

void SetPrepare(const LaunchOrder& order, const v1::JobSpec& cold, absl::Duration greatest_grace,
                v1::Prepare* prepare) {
  uint32_t first_task = 0;
  for (uint32_t g = 0; g < order.group; ++g) {
    first_task += static_cast<uint32_t>(order.job->group_sizes[g]);
  }
  SetKey(order, prepare->mutable_key());
  SetLaunch(order, cold, first_task, prepare->mutable_launch());
  ToProto(std::min(order.job->kill_grace, greatest_grace),
          prepare->mutable_launch()->mutable_kill_grace());
  prepare->set_start_at_once(order.job->task_count == 1);
  const LaunchJob& job = *order.job;
  const bool hosts = job.coordinator.has_value()
                         ? job.coordinator == order.group
                         : job.ranks.tasks[order.task].rank == 0 || job.ranks.master == order.task;
  prepare->set_reserve_port(hosts);
  if (hosts) prepare->set_preferred_port(order.preferred_port);
}

void SetStart(const LaunchOrder& order, const v1::JobSpec& cold, v1::Start* start) {
  const LaunchJob& job = *order.job;
  SetKey(order, start->mutable_key());
  start->set_master_address(job.master_address);
  start->set_master_port(job.master_port);
  start->set_epoch(order.gang_epoch);
  start->mutable_nodes()->Assign(job.node_names.begin(), job.node_names.end());
  start->mutable_node_addresses()->Assign(job.node_addresses.begin(), job.node_addresses.end());
  if (HaveHostNames(cold)) SetTaskNodes(job, start);
}

// The stop as a job's checkpoint policy calls it; nullopt: it is not foreseen by it.
std::optional<v1::CheckpointPolicy::Stop> StopOf(ReleaseReason reason) {
  switch (reason) {
    case ReleaseReason::kReclaimed:
    case ReleaseReason::kPreempted:
    case ReleaseReason::kConsolidated:
    case ReleaseReason::kGangExpired:
      return v1::CheckpointPolicy::EVICTION;
    case ReleaseReason::kDrain:
      return v1::CheckpointPolicy::DRAIN;
    case ReleaseReason::kSuspended:
      return v1::CheckpointPolicy::SUSPEND;
    case ReleaseReason::kCancelled:
      return v1::CheckpointPolicy::CANCEL;
    default:
      return std::nullopt;
  }
}

void SetKill(const LaunchOrder& order, const v1::JobSpec& cold, absl::Duration greatest_grace,
             v1::Kill* kill) {
  SetKey(order, kill->mutable_key());
  if (order.job->forced) {
    ToProto(absl::ZeroDuration(), kill->mutable_grace());
    kill->set_signal("SIGKILL");
    kill->set_reason("the job was cancelled by force");
    return;
  }
  ToProto(std::min(order.job->kill_grace, greatest_grace), kill->mutable_grace());
  kill->set_signal(cold.kill_signal());
  kill->set_reason(absl::StrCat(ReleaseReasonText(order.reason), order.detail));
  const v1::CheckpointPolicy& checkpoint = cold.checkpoint();
  const auto stop = StopOf(order.reason);
  if (!stop.has_value() || !SavesBefore(checkpoint, *stop)) return;
  kill->set_checkpoint(!checkpoint.signal().empty());
  if (!checkpoint.signal().empty()) kill->set_signal(checkpoint.signal());
  if (!checkpoint.has_grace()) return;
  ToProto(std::min(DurationFrom(checkpoint.grace()), greatest_grace), kill->mutable_grace());
}

void SetAskCheckpoint(const LaunchOrder& order, const v1::JobSpec& cold, v1::SignalTask* ask) {
  SetKey(order, ask->mutable_key());
  ask->set_signal(cold.checkpoint().signal());
  ask->set_reason(order.reason == ReleaseReason::kDrain ? "its gang must leave a node"
                                                        : "its walltime ends soon");
  ask->set_request(absl::ToUnixNanos(order.asked));
}

void SetAskStacks(const LaunchOrder& order, const v1::JobSpec& cold, v1::SignalTask* ask) {
  SetKey(order, ask->mutable_key());
  const std::string& signal = cold.watchdog().dump_signal();
  ask->set_signal(signal.empty() ? "SIGABRT" : signal);
  ask->set_reason("it hangs");
  ask->set_request(absl::ToUnixNanos(order.asked));
}

void SetFreeze(const LaunchOrder& order, v1::FreezeTask* freeze) {
  SetKey(order, freeze->mutable_key());
  if (order.kind == OrderKind::kFreeze) freeze->set_request(absl::ToUnixNanos(order.asked));
  freeze->set_checkpoint_devices(order.lends_devices);
}

}  // namespace

v1::ServerMessage ToMessage(const LaunchOrder& order, const v1::JobSpec& cold,
                            absl::Duration greatest_grace) {
  v1::ServerMessage message;
  switch (order.kind) {
    case OrderKind::kPrepare:
      SetPrepare(order, cold, greatest_grace, message.mutable_prepare());
      break;
    case OrderKind::kStart:
      SetStart(order, cold, message.mutable_start());
      break;
    case OrderKind::kKill:
      SetKill(order, cold, greatest_grace, message.mutable_kill());
      break;
    case OrderKind::kAskCheckpoint:
      SetAskCheckpoint(order, cold, message.mutable_signal_task());
      break;
    case OrderKind::kAskStacks:
      SetAskStacks(order, cold, message.mutable_signal_task());
      break;
    case OrderKind::kPrefetch:
      SetPrefetch(order, cold, message.mutable_prefetch());
      break;
    case OrderKind::kFreeze:
    case OrderKind::kThaw:
      SetFreeze(order, message.mutable_freeze_task());
      break;
  }
  return message;
}

}  // namespace berth
