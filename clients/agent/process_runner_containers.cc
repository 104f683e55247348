// ProcessRunner: commands of tasks and of their containers.
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/agent/process_runner.h"
#include "clients/agent/read_as.h"
#include "clients/agent/task_containers.h"
#include "clients/agent/task_files.h"

namespace berth {

absl::Status ProcessRunner::FillCommand(const TaskId& id, const v1::TaskLaunch& launch,
                                        const v1::Start& start, const std::string& directory,
                                        const TaskUser& user, EnvironmentContext context,
                                        SupervisorSpec* spec) const {
  spec->directory = launch.working_dir();
  std::vector<std::string> argv(launch.command().begin(), launch.command().end());
  argv.insert(argv.end(), launch.args().begin(), launch.args().end());
  if (!launch.image().empty()) {
    auto image = options_.isolation->Image(id, launch, directory);
    if (!image.ok()) return image.status();
    if (launch.command().empty()) {
      auto own = ArgvOf(*image, std::move(argv));
      if (!own.ok()) return own.status();
      argv = *std::move(own);
    }
    if (spec->directory.empty()) spec->directory = image->working_directory;
    options_.isolation->AdaptContext(*image, user, &context);
    context.image = std::move(image->env);
  }
  const absl::StatusOr<v1::TaskLaunch> complete = WithFileValues(user, launch);
  if (!complete.ok()) return complete.status();
  Environment environment = BuildEnvironment(id, *complete, start, context);
  const std::string container = ContainerNameOf(directory);
  if (!container.empty()) environment[kContainerVariable] = container;
  spec->argv = std::move(argv);  // expanded just before exec
  for (const auto& [name, value] : environment) spec->env.push_back(absl::StrCat(name, "=", value));
  return absl::OkStatus();
}

absl::Status ProcessRunner::FillContainers(const TaskId& id, const v1::TaskLaunch& launch,
                                           const v1::Start& start, SupervisorSpec* task) const {
  for (const v1::Container& container : launch.containers()) {
    const v1::TaskLaunch own = LaunchOf(launch, container);
    const std::string directory = ContainerDirectory(Directory(id), container.name());
    EnvironmentContext context = options_.context;
    context.task_directory = Directory(id);
    absl::Status status = options_.isolation->FillContext(id, own, &context);
    if (!status.ok()) return status;
    options_.isolation->AdaptContext(own, directory, &context);
    const absl::StatusOr<TaskUser> user = options_.isolation->Check(own);
    if (!user.ok()) return user.status();
    SupervisorSpec spec;
    spec.kind = KindOf(container);
    spec.name = container.name();
    spec.timeout_ms = TimeoutMsOf(container);
    status = FillCommand(id, own, start, directory, *user, std::move(context), &spec);
    if (status.ok()) status = options_.isolation->FillAsContainer(id, own, directory, task, &spec);
    if (status.ok()) status = WriteTextFile(directory + "/spec", EncodeSpec(spec), 0600);
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("container ", container.name(), ": ", status.message()));
    }
    task->container_names.push_back(container.name());
  }
  return absl::OkStatus();
}

}  // namespace berth
