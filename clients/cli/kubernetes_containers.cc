// The containers of a pod as the command and the containers of a group.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/cli/kubernetes_pod.h"

namespace berth {
namespace {

using kubernetes::v1::Container;
using kubernetes::v1::PodSpec;

using Devices = std::map<std::string, int32_t>;  // by kind

Devices DevicesOf(const v1::ResourceRequest& request) {
  Devices devices;
  for (const v1::DeviceRequest& device : request.devices())
    devices[device.kind()] += device.count();
  return devices;
}

void SetDevices(const Devices& devices, v1::ResourceRequest* request) {
  request->clear_devices();
  for (const auto& [kind, count] : devices) {
    v1::DeviceRequest& device = *request->add_devices();
    device.set_kind(kind);
    device.set_count(count);
  }
}

// What runs together needs the sum, and a step that runs alone only its own.
void AddTo(const v1::ResourceRequest& more, v1::ResourceRequest* sum) {
  sum->set_cpu_millis(sum->cpu_millis() + more.cpu_millis());
  sum->set_memory_bytes(sum->memory_bytes() + more.memory_bytes());
  sum->set_scratch_bytes(sum->scratch_bytes() + more.scratch_bytes());
  Devices devices = DevicesOf(*sum);
  for (const auto& [kind, count] : DevicesOf(more)) devices[kind] += count;
  SetDevices(devices, sum);
}

void RaiseTo(const v1::ResourceRequest& least, v1::ResourceRequest* request) {
  request->set_cpu_millis(std::max(request->cpu_millis(), least.cpu_millis()));
  request->set_memory_bytes(std::max(request->memory_bytes(), least.memory_bytes()));
  request->set_scratch_bytes(std::max(request->scratch_bytes(), least.scratch_bytes()));
  Devices devices = DevicesOf(*request);
  for (const auto& [kind, count] : DevicesOf(least)) devices[kind] = std::max(devices[kind], count);
  SetDevices(devices, request);
}

class ContainersConverter {
 public:
  ContainersConverter(const std::string& path, const PodSpec& pod,
                      const PodSurroundings& surroundings, const std::string& to, ForeignJob& job,
                      v1::TaskGroup& group)
      : path_(path),
        pod_(pod),
        surroundings_(surroundings),
        to_(to),
        job_(job),
        document_(job.document()),
        group_(group) {
    for (const auto* containers : {&pod.containers(), &pod.init_containers()}) {
      for (const Container& one : *containers) {
        for (const auto& mount : one.volume_mounts()) ++directories_.mounts[mount.name()];
      }
    }
  }

  void Convert() {
    if (pod_.containers().empty()) return document_.Missing(path_ + ".containers", "containers");
    const std::string first = path_ + ".containers[0]";
    ConvertContainer(first, pod_.containers(0), surroundings_, to_, &job_, &group_);
    together_ = group_.resources();
    if (together_.devices_size() > 0) ++with_devices_;
    ConvertVolumesOf(first, pod_.containers(0), to_, &group_);
    for (int i = 0; i < pod_.init_containers_size(); ++i) ConvertInit(i);
    for (int i = 1; i < pod_.containers_size(); ++i) ConvertPeer(i);
    if (pod_.share_process_namespace() && group_.containers_size() > 0) {
      document_.Error(path_ + ".share_process_namespace",
                      "shareProcessNamespace: each container sees only its own processes");
    }
    if (with_devices_ > 1) {
      document_.Error(path_ + ".containers",
                      "devices of several containers: all containers of a task see all of its "
                      "devices, not each its own");
    }
    RaiseTo(steps_, &together_);
    together_.set_scratch_bytes(together_.scratch_bytes() + directory_bytes_.scratch_bytes());
    if (together_.ByteSizeLong() > 0) *group_.mutable_resources() = together_;
  }

 private:
  void ConvertInit(int index) {
    const Container& in = pod_.init_containers(index);
    const std::string from = absl::StrCat(path_, ".init_containers[", index, "]");
    const bool sidecar = in.restart_policy() == "Always";
    if (!sidecar && !in.restart_policy().empty()) {
      document_.Error(from + ".restart_policy",
                      absl::StrCat("restartPolicy \"", in.restart_policy(), "\" is not Always"));
    }
    const v1::ResourceRequest own =
        ConvertOne(from, in, sidecar ? v1::Container::SIDECAR : v1::Container::INIT);
    if (sidecar) {
      AddTo(own, &together_);
      AddTo(own, &sidecars_);
      return;
    }
    v1::ResourceRequest step = sidecars_;  // they run beside it
    AddTo(own, &step);
    RaiseTo(step, &steps_);
  }

  void ConvertPeer(int index) {
    const std::string from = absl::StrCat(path_, ".containers[", index, "]");
    AddTo(ConvertOne(from, pod_.containers(index), v1::Container::PEER), &together_);
  }

  v1::ResourceRequest ConvertOne(const std::string& from, const Container& in,
                                 v1::Container::Kind kind) {
    const std::string to = absl::StrCat(to_, ".containers[", group_.containers_size(), "]");
    v1::TaskGroup as_group;
    ConvertContainer(from, in, surroundings_, to, &job_, &as_group);
    if (as_group.resources().devices_size() > 0 && kind != v1::Container::INIT) ++with_devices_;
    const v1::ResourceRequest resources = as_group.resources();
    ConvertVolumesOf(from, in, to, &as_group);
    v1::Container& out = *group_.add_containers();
    out.set_name(in.name());
    out.set_kind(kind);
    out.set_image(as_group.image());
    out.set_image_pull_policy(as_group.image_pull_policy());
    *out.mutable_command() = std::move(*as_group.mutable_command());
    *out.mutable_args() = std::move(*as_group.mutable_args());
    *out.mutable_env() = std::move(*as_group.mutable_env());
    *out.mutable_volumes() = std::move(*as_group.mutable_volumes());
    out.set_working_dir(as_group.working_dir());
    job_.Place(to, from);
    job_.Place(to + ".name", from + ".name");
    return resources;
  }

  void ConvertVolumesOf(const std::string& from, const Container& in, const std::string& to,
                        v1::TaskGroup* out) {
    ConvertVolumes(path_, pod_, from, in, to, &directories_, &job_, &directory_bytes_, out);
  }

  const std::string& path_;
  const PodSpec& pod_;
  const PodSurroundings& surroundings_;
  const std::string& to_;
  ForeignJob& job_;
  ForeignDocument& document_;
  v1::TaskGroup& group_;
  PodDirectories directories_;
  v1::ResourceRequest together_;         // of what runs at the same time as the command
  v1::ResourceRequest sidecars_;         // those that have been seen so far
  v1::ResourceRequest steps_;            // the most that runs before the command
  v1::ResourceRequest directory_bytes_;  // scratch of emptyDirs
  int with_devices_ = 0;                 // containers, without steps
};

}  // namespace

void ConvertContainers(const std::string& path, const PodSpec& pod,
                       const PodSurroundings& surroundings, const std::string& to, ForeignJob* job,
                       v1::TaskGroup* group) {
  ContainersConverter(path, pod, surroundings, to, *job, *group).Convert();
}

}  // namespace berth
