#include "clients/cli/queue_view.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/human.h"
#include "clients/cli/manifest.h"
#include "clients/cli/page.h"

namespace berth {
namespace {

int32_t Weight(const v1::QueueSpec& spec) { return spec.has_weight() ? spec.weight() : 1; }

const char* Reclaimable(const v1::QueueSpec& spec) {
  return spec.has_reclaimable() && !spec.reclaimable() ? "no" : "yes";
}

// Adds queues below their parents, by name. A queue whose parent is not listed is at the top.
class QueueTree {
 public:
  explicit QueueTree(const std::vector<v1::Queue>& queues)
      : table_({{"NAME", Column::kTree},
                {"STATE"},
                {"RUNNING", Column::kRight},
                {"PENDING", Column::kRight},
                {"HELD", Column::kRight},
                {"ENDED", Column::kRight | Column::kWide},
                {"MAX JOBS", Column::kRight | Column::kWide},
                {"MAX RUNNING", Column::kRight | Column::kWide},
                {"MAX TASKS", Column::kRight | Column::kWide},
                {"ALLOCATED"},
                {"PENDING NEEDS", Column::kWide},
                {"LIMIT"},
                {"DESERVED", Column::kWide},
                {"GUARANTEE", Column::kWide},
                {"WEIGHT", Column::kRight | Column::kWide},
                {"PRIORITY", Column::kRight | Column::kWide},
                {"RECLAIMABLE", Column::kWide},
                {"ORDER", Column::kWide},
                {"USERS", Column::kWide},
                {"STRATEGY", Column::kWide},
                {"LABELS", Column::kWide}}) {
    std::map<std::string, const v1::Queue*> by_name;
    for (const v1::Queue& queue : queues) by_name[queue.name()] = &queue;
    for (const auto& entry : by_name) {
      const std::string& parent = entry.second->spec().parent();
      children_[by_name.count(parent) > 0 ? parent : ""].push_back(entry.second);
    }
    AddBelow("", absl::nullopt);
  }
  Table Take() { return std::move(table_); }

 private:
  // The server's trees are shallow; a cycle, which it refuses, is never reached from the top.
  void AddBelow(const std::string& parent, absl::optional<size_t> parent_row) {
    for (const v1::Queue* queue : children_[parent]) {
      const size_t row = table_.AddRow(Cells(*queue), parent_row);
      AddBelow(queue->name(), row);
    }
  }

  static std::string Bound(int32_t bound) { return bound == 0 ? "-" : absl::StrCat(bound); }

  static std::vector<Word> Cells(const v1::Queue& queue) {
    const v1::QueueStatus& status = queue.status();
    return {{queue.name()},
            QueueStateWord(status.state()),
            {absl::StrCat(status.running_jobs())},
            {absl::StrCat(status.pending_jobs())},
            {absl::StrCat(status.held_jobs())},
            {absl::StrCat(status.ended_jobs())},
            {Bound(queue.spec().max_jobs())},
            {Bound(queue.spec().max_running_jobs())},
            {Bound(queue.spec().max_tasks())},
            {HumanResources(status.allocated())},
            {HumanResources(status.pending())},
            {HumanResources(queue.spec().limit())},
            {HumanResources(queue.spec().deserved())},
            {HumanResources(queue.spec().guarantee())},
            {absl::StrCat(Weight(queue.spec()))},
            {absl::StrCat(queue.spec().priority())},
            {Reclaimable(queue.spec())},
            {HumanEnum(queue.spec().order())},
            {HumanEnum(queue.spec().user_fairness())},
            {HumanEnum(queue.spec().strategy())},
            {KeyValues(queue.spec().labels())}};
  }

  Table table_;
  std::map<std::string, std::vector<const v1::Queue*>> children_;
};

std::string DefaultsText(const v1::QueueDefaults& defaults) {
  std::vector<std::string> parts;
  if (defaults.cpu_millis() != 0)
    parts.push_back(absl::StrCat("cpu ", HumanCpu(defaults.cpu_millis())));
  if (defaults.memory_bytes() != 0)
    parts.push_back(absl::StrCat("memory ", HumanBytes(defaults.memory_bytes())));
  if (defaults.has_walltime())
    parts.push_back(absl::StrCat("walltime ", HumanDuration(DurationFrom(defaults.walltime()))));
  return absl::StrJoin(parts, ", ");
}

}  // namespace

Shape<v1::Queue> QueueShape() {
  return {
      "queue",
      [](const std::vector<v1::Queue>& queues, const Session&) { return QueueTree(queues).Take(); },
      [](const v1::Queue& queue) { return WriteManifest(queue); }};
}

std::string DescribeQueue(const v1::Queue& queue, const Session& session) {
  const v1::QueueStatus& status = queue.status();
  const v1::QueueSpec& spec = queue.spec();
  Page page;
  page.Add("Name", queue.name());
  page.Add("Parent", spec.parent());
  page.Add("State", Paint(QueueStateWord(status.state()), session.colors()));
  page.Add("Children", absl::StrJoin(status.children(), ", "));
  page.Add("Jobs",
           absl::StrCat(status.running_jobs(), " running, ", status.pending_jobs(), " pending, ",
                        status.held_jobs(), " held, ", status.ended_jobs(), " ended"));
  if (spec.max_jobs() != 0) page.Add("Max jobs", absl::StrCat(spec.max_jobs()));
  if (spec.max_running_jobs() != 0) page.Add("Max running", absl::StrCat(spec.max_running_jobs()));
  page.Add("Tasks", absl::StrCat(status.active_tasks(), " of jobs that have not ended"));
  if (spec.max_tasks() != 0) page.Add("Max tasks", absl::StrCat(spec.max_tasks()));
  page.Add("Defaults", DefaultsText(spec.defaults()));
  page.Add("Limit", HumanResources(spec.limit()));
  page.Add("Deserved", HumanResources(spec.deserved()));
  page.Add("Guarantee", HumanResources(spec.guarantee()));
  page.Add("Weight", absl::StrCat(Weight(spec)));
  page.Add("Priority", absl::StrCat(spec.priority()));
  page.Add("Reclaimable", Reclaimable(spec));
  if (spec.surplus_only()) page.Add("Surplus only", "yes");
  if (spec.has_slice()) page.Add("Time slice", HumanDuration(DurationFrom(spec.slice())));
  page.Add("Order", HumanEnum(spec.order()));
  page.Add("User fairness", HumanEnum(spec.user_fairness()));
  page.Add("Strategy", HumanEnum(spec.strategy()));
  page.Add("On devices", HumanEnum(spec.device_strategy()));
  page.Add("Past usage", HumanResources(status.usage()));
  page.Add("Allocated", HumanResources(status.allocated()));
  page.Add("Pending needs", HumanResources(status.pending()));
  page.Add("Labels", KeyValues(spec.labels()));
  std::vector<std::string> conditions;
  for (const v1::QueueCondition& condition : status.conditions()) {
    conditions.push_back(absl::StrCat(HumanEnum(condition.kind()), ": ", condition.detail()));
  }
  page.AddSection("Conditions", absl::StrJoin(conditions, "\n"));
  return page.Text();
}

}  // namespace berth
