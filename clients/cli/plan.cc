#include "clients/cli/plan.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/apply.h"
#include "clients/cli/human.h"
#include "clients/cli/job_view.h"
#include "clients/cli/output.h"
#include "clients/cli/page.h"
#include "support/yaml_proto.h"

namespace berth {
namespace {

using PlannedTasks = google::protobuf::RepeatedPtrField<v1::PlannedTask>;

constexpr size_t kShownNodes = 20;  // -o wide shows all

// Tasks of one group with consecutive indexes: "worker-0..3".
struct TaskRun {
  std::string group;
  int32_t first = 0;
  int32_t last = 0;
  std::string Text() const {
    return absl::StrCat(group, "-", first, first == last ? "" : absl::StrCat("..", last));
  }
};

struct NodeShare {
  std::string node;
  std::vector<TaskRun> runs;
  std::vector<std::string> devices;  // uuids
};

void AddTask(const v1::PlannedTask& task, NodeShare* share) {
  const bool goes_on = !share->runs.empty() && share->runs.back().group == task.group() &&
                       share->runs.back().last + 1 == task.index();
  if (goes_on) {
    ++share->runs.back().last;
  } else {
    share->runs.push_back({task.group(), task.index(), task.index()});
  }
  share->devices.insert(share->devices.end(), task.device_uuids().begin(),
                        task.device_uuids().end());
}

// In the order of the first task on each node.
std::vector<NodeShare> ByNode(const PlannedTasks& tasks) {
  std::vector<NodeShare> shares;
  std::map<std::string, size_t> index;
  for (const v1::PlannedTask& task : tasks) {
    const auto at = index.emplace(task.node(), shares.size()).first;
    if (at->second == shares.size()) shares.push_back({task.node(), {}, {}});
    AddTask(task, &shares[at->second]);
  }
  return shares;
}

std::string RunsText(const std::vector<TaskRun>& runs) {
  return absl::StrJoin(
      runs, ", ", [](std::string* out, const TaskRun& run) { absl::StrAppend(out, run.Text()); });
}

std::string PlanNodeTable(const std::vector<NodeShare>& shares, const Session& session) {
  Table table({{"NODE"}, {"TASKS"}, {"DEVICES", Column::kRight}, {"UUIDS", Column::kWide}});
  const bool wide = session.options.format == Format::kWide;
  const size_t shown = wide ? shares.size() : std::min(shares.size(), kShownNodes);
  for (size_t i = 0; i < shown; ++i) {
    table.AddRow({{shares[i].node},
                  {RunsText(shares[i].runs)},
                  {absl::StrCat(shares[i].devices.size())},
                  {absl::StrJoin(shares[i].devices, ",")}});
  }
  TableStyle style = session.table_style();
  style.headers = true;
  std::string text = table.Render(style);
  if (shown < shares.size()) {
    absl::StrAppend(&text, "... and ", shares.size() - shown, " more nodes: -o wide shows all\n");
  }
  return text;
}

std::string EvictionTable(const v1::PlanJobResponse& plan, const Session& session) {
  if (plan.evictions().empty()) return "";
  Table table({{"JOB"}, {"QUEUE"}, {"TASKS", Column::kRight}, {"REASON"}, {"WHY"}});
  for (const v1::PlannedEviction& eviction : plan.evictions()) {
    table.AddRow({{eviction.job()},
                  {eviction.queue()},
                  {absl::StrCat(eviction.tasks())},
                  {eviction.paused() ? "Paused" : HumanEnum(eviction.reason())},
                  {eviction.detail()}});
  }
  TableStyle style = session.table_style();
  style.headers = true;
  return table.Render(style);
}

std::string BlockerLines(const v1::PlanJobResponse& plan, const Session& session) {
  std::string text;
  for (const v1::WaitReason& reason : plan.blockers()) {
    absl::StrAppend(&text, HumanReasonUntil(reason, session.io().time_zone), "\n");
  }
  return text;
}

std::string OnNodes(const std::string& what, const std::vector<NodeShare>& shares) {
  return absl::StrCat(what, " on ", shares.size(), shares.size() == 1 ? " node" : " nodes");
}

}  // namespace

std::string PlanText(const v1::PlanJobResponse& plan, const Session& session) {
  if (plan.exhausted()) {
    return "Where it would run is unknown: planning exceeds the budget of one request.\n";
  }
  Page page;
  const std::vector<NodeShare> placed = ByNode(plan.placements());
  const std::vector<NodeShare> nominated = ByNode(plan.nominated());
  if (!placed.empty()) {
    page.AddSection(OnNodes("Starts now", placed), PlanNodeTable(placed, session));
  }
  if (!nominated.empty()) {
    page.AddSection(OnNodes("Waits for resources being released", nominated),
                    PlanNodeTable(nominated, session));
  }
  page.AddSection("Evicts", EvictionTable(plan, session));
  page.AddSection("Pending because", BlockerLines(plan, session));
  if (plan.has_reservation()) {
    page.AddSection("Reserved", ReservationText(plan.reservation(), session));
  }
  return page.Text();
}

ExitCode PlanManifest(Session& session, const Manifest& manifest) {
  v1::PlanJobRequest request;
  *request.mutable_job() = manifest.job;
  const absl::StatusOr<v1::PlanJobResponse> plan =
      session.Call(&v1::ExplainService::StubInterface::PlanJob, request);
  if (!plan.ok()) return FinishSubmit(session, plan.status(), {&manifest});
  const std::string name = manifest.name().empty() ? "?" : manifest.name();
  switch (session.options.format) {
    case Format::kJson:
      session.out() << JsonOf(*plan) << "\n";
      break;
    case Format::kYaml:
      session.NextDocument() << YamlOf(*plan);
      break;
    case Format::kName:
      session.out() << "job/" << name << "\n";
      break;
    default:
      session.out() << "job/" << name << " would be accepted (dry run)\n"
                    << PlanText(*plan, session);
  }
  return ExitCode::kOk;
}

}  // namespace berth
