#include "clients/agent/discovery/discover.h"

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "clients/agent/discovery/assemble.h"
#include "clients/agent/discovery/distance.h"
#include "clients/agent/discovery/hwloc_source.h"
#include "clients/agent/discovery/nccl_source.h"
#include "clients/agent/discovery/nvml_join.h"
#include "clients/agent/discovery/override.h"
#include "clients/agent/discovery/sysfs.h"
#include "clients/agent/discovery/xml_file.h"

namespace berth::discovery {
namespace {

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::Status Named(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

absl::StatusOr<Machine> FromFile(const std::string& path) {
  absl::StatusOr<XmlFile> file = ReadXmlFile(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<Machine> machine =
      file->kind == XmlKind::kNccl ? ReadNcclXml(file->document) : ReadHwlocXml(file->text);
  if (!machine.ok()) return Named(path, machine.status());
  return machine;
}

absl::StatusOr<Machine> FromFolder(const std::string& path) {
  if (!IsFolder(path + "/sys"))
    return absl::InvalidArgumentError(absl::StrCat(path, ": contains no copy of /sys"));
  absl::StatusOr<Machine> machine = ReadCopiedRoot(path);
  if (!machine.ok()) return Named(path, machine.status());
  JoinNicPorts(path, &*machine);
  JoinAmd(path, &*machine);
  return machine;
}

// hwloc may fail if /sys is hidden; NVML can still report GPUs.
Machine Live(const std::string& nvml_library) {
  Machine machine;
  absl::StatusOr<Machine> read = ReadThisMachine();
  if (read.ok()) {
    machine = *std::move(read);
  } else {
    machine.warnings.emplace_back(read.status().message());
  }
  AddPluggedMemory(int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE), &machine);
  JoinNicPorts("", &machine);
  JoinAmd("", &machine);
  JoinNvmlLibrary(nvml_library.empty() ? kNvmlLibraryName : nvml_library, &machine);
  return machine;
}

absl::StatusOr<Machine> Source(const DiscoverOptions& options) {
  if (options.from.empty()) return Live(options.nvml_library);
  return IsFolder(options.from) ? FromFolder(options.from) : FromFile(options.from);
}

}  // namespace

absl::StatusOr<Machine> Discover(const DiscoverOptions& options) {
  absl::StatusOr<Machine> machine = Source(options);
  if (!machine.ok()) return machine;
  machine->source = options.from.empty() ? "this machine" : options.from;
  if (!options.topology_file.empty()) {
    const absl::StatusOr<Machine> given = FromFile(options.topology_file);
    if (!given.ok()) return given.status();
    ApplyOverride(*given, &*machine);
  }
  NameGpusWithoutUuid(&*machine);
  ComputeDistances(&*machine);
  return machine;
}

}  // namespace berth::discovery
