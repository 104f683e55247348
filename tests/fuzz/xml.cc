// Topology files of hwloc and NCCL, from the file to what is sent to the agent.
#include <sys/mman.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "clients/agent/discovery/discover.h"
#include "clients/agent/discovery/render.h"
#include "clients/agent/discovery/topo_matrix.h"
#include "clients/agent/discovery/wire.h"
#include "clients/agent/discovery/xml_file.h"
#include "core/base/check.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {
namespace {

// An in-memory file with this content.
class MemoryFile {
 public:
  explicit MemoryFile(absl::string_view content) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    BERTH_CHECK(write(fd_, content.data(), content.size()) == static_cast<ssize_t>(content.size()));
  }
  ~MemoryFile() { close(fd_); }
  std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }

 private:
  const int fd_;
};

}  // namespace

void FuzzOne(absl::string_view input) {
  const MemoryFile file(input);
  // hwloc is known to crash on malicious XML, which is why berth-probe is a separate process. So
  // this stops before hwloc reads the file.
  const auto read = discovery::ReadXmlFile(file.path());
  if (!read.ok() || read->kind == discovery::XmlKind::kHwloc) return;
  const auto machine = discovery::Discover({.from = file.path()});
  if (!machine.ok()) return;
  const std::string wire = discovery::EncodeMachine(*machine);
  const auto again = discovery::DecodeMachine(wire);
  BERTH_CHECK(again.ok());
  BERTH_CHECK(discovery::EncodeMachine(*again) == wire);
  discovery::RenderTable(*machine);
  discovery::RenderJson(*machine);
}

}  // namespace berth::fuzz
