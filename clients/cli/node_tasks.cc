#include "clients/cli/node_tasks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/by_name.h"
#include "clients/cli/human.h"
#include "clients/cli/resource_names.h"

namespace berth {
namespace {

using JobStub = v1::JobService::StubInterface;

ExitCode ShowNodeTasks(Session& session, const Names& nodes) {
  v1::ListTasksResponse all;
  const ExitCode code = ForEachName(session, nodes, [&](const std::string& node) {
    const absl::StatusOr<v1::ListTasksResponse> tasks = TasksOfNode(session, node);
    if (tasks.ok()) all.MergeFrom(*tasks);
    return tasks.status();
  });
  std::ostream& out = session.out();
  switch (session.options.format) {
    case Format::kJson:
      out << JsonOf(all) << "\n";
      break;
    case Format::kYaml:
      out << YamlOf(all);
      break;
    case Format::kName:
      for (const v1::Task& task : all.tasks())
        out << "job/" << task.job() << "/" << task.group() << "-" << task.index() << "\n";
      break;
    default:
      if (all.tasks().empty() && code == ExitCode::kOk) session.err() << "no tasks\n";
      out << NodeTaskTable(all, SIZE_MAX, session).Render(session.table_style());
  }
  return code;
}

}  // namespace

absl::StatusOr<v1::ListTasksResponse> TasksOfNode(Session& session, const std::string& node) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  v1::ListTasksRequest request;
  request.set_node(node);
  v1::ListTasksResponse all;
  const absl::Status status = (*client)->List<JobStub, v1::ListTasksRequest, v1::ListTasksResponse>(
      &JobStub::ListTasks, request, [&](const v1::ListTasksResponse& page) {
        all.mutable_tasks()->MergeFrom(page.tasks());
        return true;
      });
  if (!status.ok()) return status;
  return all;
}

Table NodeTaskTable(const v1::ListTasksResponse& tasks, size_t most, const Session& session) {
  Table table({{"JOB"},
               {"TASK"},
               {"STATE"},
               {"NODE", Column::kWide},
               {"ATTEMPT", Column::kRight | Column::kWide},
               {"AGE", Column::kRight},
               {"DEVICES", Column::kShorten}});
  const size_t shown = std::min(most, static_cast<size_t>(tasks.tasks_size()));
  for (size_t i = 0; i < shown; ++i) {
    const v1::Task& task = tasks.tasks(static_cast<int>(i));
    table.AddRow(
        {{task.job()},
         {NameOfTask(task)},
         TaskStateWord(task),
         {task.node()},
         {absl::StrCat(task.attempt())},
         {HumanAge(task.has_start_time(), task.start_time(), session.Now())},
         {absl::StrCat(absl::StrJoin(task.devices(), ","), task.devices_lent() ? " (lent)" : "")}});
  }
  return table;
}

void AddNodeTasks(CLI::App& noun, Session& session) {
  AddNames(noun, session, "tasks", "show the tasks on nodes with their devices", ShowNodeTasks);
}

}  // namespace berth
