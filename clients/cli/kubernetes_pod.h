// The pod template of a job of Kubernetes or Volcano as the process of a group.
#ifndef BERTH_CLIENTS_CLI_KUBERNETES_POD_H_
#define BERTH_CLIENTS_CLI_KUBERNETES_POD_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "clients/cli/foreign_document.h"
#include "clients/cli/kubernetes_text.h"

namespace berth {

// What the kind of a job gives to its pods.
struct PodSurroundings {
  // Variables that are known only when a task starts: `env` in front of the command sets them, by
  // what Berth sets. "JOB_COMPLETION_INDEX" -> "${BERTH_ARRAY_INDEX}"
  Variables variables;
  // The same for variables that only commands may refer to, as $(NAME).
  Variables in_commands;
  // valueFrom.fieldRef.fieldPath -> text of a command.
  Variables fields;
  // Words of commands and values that are replaced: "/etc/mpi/hostfile" -> "${BERTH_HOSTFILE}".
  Variables replaced;
};

// Fills all of `group` but name, replicas, dependencies and policies. `path` is that of the
// template ("" if it is the document), `to` that of the group: "spec.groups[0]".
void ConvertPodTemplate(const std::string& path, const kubernetes::v1::PodTemplate& pod,
                        const PodSurroundings& surroundings, const std::string& to, ForeignJob* job,
                        v1::TaskGroup* group);

// What a container takes from elsewhere.
void ConvertContainer(const std::string& path, const kubernetes::v1::Container& container,
                      const PodSurroundings& surroundings, const std::string& to, ForeignJob* job,
                      v1::TaskGroup* group);

// The next two belong to ConvertContainer.

// Sets env of the group. Returns words "NAME=TEXT" for variables that are known only when a task
// starts, and adds all names to `known`.
std::vector<std::string> ConvertEnvironment(const std::string& path,
                                            const kubernetes::v1::Container& container,
                                            const PodSurroundings& surroundings,
                                            const std::string& to, ForeignJob* job,
                                            v1::TaskGroup* group, Variables* known);

// All containers of a pod: the first becomes the command of `group`, the others and the init
// containers its containers. `path`: the pod's specification.
void ConvertContainers(const std::string& path, const kubernetes::v1::PodSpec& pod,
                       const PodSurroundings& surroundings, const std::string& to, ForeignJob* job,
                       v1::TaskGroup* group);

// The next belongs to ConvertContainers.

// The emptyDirs of a pod, for all of its containers.
struct PodDirectories {
  std::map<std::string, int> mounts;  // how often each is mounted
  std::set<std::string> counted;      // whose size is in the task's scratch
};
// Mounts of a container, from the volumes of the pod, as volumes of `out`. Sizes are added to
// `resources`. `container_path` is that of the container, `to` that of `out`.
void ConvertVolumes(const std::string& path, const kubernetes::v1::PodSpec& pod,
                    const std::string& container_path, const kubernetes::v1::Container& container,
                    const std::string& to, PodDirectories* directories, ForeignJob* job,
                    v1::ResourceRequest* resources, v1::TaskGroup* out);

// Berth has one amount for each resource: the larger of request and limit, which the task may use.
void ConvertResources(const std::string& path, const kubernetes::v1::Resources& in, ForeignJob* job,
                      v1::ResourceRequest* out);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_KUBERNETES_POD_H_
