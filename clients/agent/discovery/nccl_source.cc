#include "clients/agent/discovery/nccl_source.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/agent/discovery/assemble.h"
#include "clients/agent/discovery/cpu_list.h"
#include "clients/agent/discovery/vendors.h"

namespace berth::discovery {
namespace {

constexpr int32_t kClassBridge = 0x0604;

absl::Status At(const XmlElement& element, absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", element.line, ": <", element.name, ">: ", reason));
}

// "0x030200" -> 0x0302; anything else -> 0.
int32_t Hex(absl::string_view text) {
  uint32_t value = 0;
  return text.size() <= 8 && absl::SimpleHexAtoi(text, &value) ? static_cast<int32_t>(value) : 0;
}
int32_t ClassOf(const XmlElement& element) { return Hex(element.Get("class")) >> 8; }

// "16 GT/s", "32.0 GT/s PCIe" by "16" lanes. 0 where either is unknown.
int64_t LinkMbPerS(const XmlElement& element) {
  const std::vector<std::string> words = absl::StrSplit(element.Get("link_speed"), ' ');
  double speed = 0;
  int width = 0;
  if (!absl::SimpleAtod(words[0], &speed) || !absl::SimpleAtoi(element.Get("link_width"), &width))
    return 0;
  if (!(speed > 0 && speed <= 256) || width <= 0 || width > 64) return 0;
  const double coding = speed < 8 ? 0.8 : 128.0 / 130;
  return std::lround(speed * width / 8 * 1000 * coding);
}

class NcclReader {
 public:
  explicit NcclReader(const XmlDocument& document)
      : elements_(document.elements), places_(document.elements.size(), -1) {}

  absl::StatusOr<Machine> Read() {
    MarkParents();
    for (size_t i = 1; i < elements_.size(); ++i) {
      const std::string& name = elements_[i].name;
      absl::Status status;
      if (name == "cpu") status = AddCpu(i);
      if (name == "pci") status = AddFunction(i);
      if (name == "gpu") status = AddGpu(i);
      if (name == "net") status = AddNet(i);
      if (name == "nvlink" || name == "xgmi") status = AddLink(i);
      if (!status.ok()) return status;
    }
    if (machine_.numa_nodes.empty()) return At(elements_[0], "contains no <cpu>");
    NameUnnamedNics();
    Assemble(drafts_, &machine_, Keep::kAll);
    return std::move(machine_);
  }

 private:
  const XmlElement* Parent(const XmlElement& element) const {
    return element.parent < 0 ? nullptr : &elements_[static_cast<size_t>(element.parent)];
  }
  // The draft of the element, or of the nearest one above it that has one.
  PciDraft* DraftAbove(const XmlElement& element) {
    for (int32_t at = element.parent; at >= 0; at = elements_[static_cast<size_t>(at)].parent) {
      const int32_t place = places_[static_cast<size_t>(at)];
      if (place >= 0) return &drafts_[static_cast<size_t>(place)];
    }
    return nullptr;
  }

  void MarkParents() {
    holds_functions_.resize(elements_.size());
    for (const XmlElement& element : elements_) {
      if (element.name == "pci" && element.parent >= 0)
        holds_functions_[static_cast<size_t>(element.parent)] = true;
    }
  }

  absl::Status AddCpu(size_t index) {
    const XmlElement& element = elements_[index];
    int32_t numa = -1;
    if (!absl::SimpleAtoi(element.Get("numaid"), &numa) || numa < -1)
      return At(element, "numaid is not a number");
    machine_.numa_nodes.push_back({.os_index = numa, .cpus = CpuList(element.Get("affinity"))});
    PciDraft draft{.node = {.kind = PciKind::kHostBridge, .name = element.Get("vendor")}};
    if (numa >= 0) draft.node.numa_nodes = {numa};
    places_[index] = Push(std::move(draft));
    return absl::OkStatus();
  }

  absl::Status AddFunction(size_t index) {
    const XmlElement& element = elements_[index];
    const absl::optional<PciAddress> address = ParsePciAddress(element.Get("busid"));
    if (!address) return At(element, absl::StrCat("busid \"", element.Get("busid"), "\""));
    const XmlElement* parent = Parent(element);
    const int32_t above = places_[static_cast<size_t>(element.parent)];
    if (above < 0 || parent == nullptr) return At(element, "is outside of <cpu> and <pci>");
    PciDraft draft = NewDraft(above, *address);
    if (parent->name == "pci") {
      draft.node.kind = PciKind::kBridge;
      draft.node.name = "port";
      draft = NewDraft(Push(std::move(draft)), *address);
    }
    draft.node.kind = holds_functions_[index] ? PciKind::kBridge : PciKind::kDevice;
    draft.node.class_id = ClassOf(element);
    if (draft.node.class_id == kClassBridge) draft.node.kind = PciKind::kBridge;
    draft.node.vendor = Hex(element.Get("vendor"));
    draft.node.device = Hex(element.Get("device"));
    draft.node.link_mb_per_s = LinkMbPerS(element);
    // Handwritten files have classes, but no vendors.
    draft.is_gpu =
        draft.node.vendor == 0 && (draft.node.class_id == 0x0302 || draft.node.class_id == 0x0380 ||
                                   draft.node.class_id == 0x1200);
    places_[index] = Push(std::move(draft));
    return absl::OkStatus();
  }

  PciDraft NewDraft(int32_t parent, const PciAddress& address) {
    PciNode& above = drafts_[static_cast<size_t>(parent)].node;
    if (above.kind == PciKind::kHostBridge && above.address == PciAddress())
      above.address = {.domain = address.domain, .bus = address.bus};
    return {.node = {.parent = parent, .address = address, .numa_nodes = above.numa_nodes}};
  }

  int32_t Push(PciDraft draft) {
    drafts_.push_back(std::move(draft));
    return static_cast<int32_t>(drafts_.size()) - 1;
  }

  absl::Status AddGpu(size_t index) {
    PciDraft* draft = DraftAbove(elements_[index]);
    if (draft == nullptr || draft->node.kind != PciKind::kDevice)
      return At(elements_[index], "is not inside a <pci>");
    draft->is_gpu = true;
    draft->os_devices.push_back({.name = absl::StrCat("dev", elements_[index].Get("dev"))});
    return absl::OkStatus();
  }

  absl::Status AddNet(size_t index) {
    const XmlElement& element = elements_[index];
    PciDraft* draft = DraftAbove(element);
    if (draft == nullptr || draft->node.kind != PciKind::kDevice) return absl::OkStatus();
    OsDevice device{.kind = OsDevice::Kind::kOpenFabrics, .name = element.Get("name")};
    device.infos = {{"NodeGUID", element.Get("guid")}, {"Speed", element.Get("speed")}};
    if (device.name.empty()) device.name = absl::StrCat("net", element.Get("dev"));
    draft->os_devices.push_back(std::move(device));
    return absl::OkStatus();
  }

  // The target's class gives the kind of the link. A target that is not an address is a switch that
  // the machine hides.
  absl::Status AddLink(size_t index) {
    const XmlElement& element = elements_[index];
    PciDraft* draft = DraftAbove(element);
    FabricLink link{.count = 0};
    if (!absl::SimpleAtoi(element.Get("count"), &link.count) || link.count < 0 || link.count > 256)
      return At(element, "count is not a number in 0..256");
    if (draft == nullptr || draft->os_devices.empty()) return At(element, "is not inside a <gpu>");
    if (element.name == "xgmi") link.fabric = FabricKind::kXgmi;
    const absl::optional<PciAddress> target = ParsePciAddress(element.Get("target"));
    link.address = target.value_or(PciAddress());
    link.peer = target ? PeerOf(Hex(element.Get("tclass"))) : PeerKind::kSwitch;
    draft->os_devices.back().links.push_back(link);
    return absl::OkStatus();
  }

  static PeerKind PeerOf(int32_t target_class) {
    if (target_class == 0x068000) return PeerKind::kSwitch;
    if (target_class == 0x068001) return PeerKind::kCpu;
    return PeerKind::kGpu;
  }

  // Functions that are NICs by class, in files that do not name them.
  void NameUnnamedNics() {
    for (PciDraft& draft : drafts_) {
      const int32_t id = draft.node.class_id;
      if (draft.node.kind != PciKind::kDevice || !draft.os_devices.empty()) continue;
      if (id != 0x0200 && id != 0x0207) continue;
      draft.os_devices.push_back({.kind = OsDevice::Kind::kOpenFabrics,
                                  .name = absl::StrCat("nic-", ToString(draft.node.address))});
    }
  }

  const std::vector<XmlElement>& elements_;
  std::vector<int32_t> places_;  // of each element among the drafts, -1 = none
  std::vector<bool> holds_functions_;
  std::vector<PciDraft> drafts_;
  Machine machine_;
};

}  // namespace

absl::StatusOr<Machine> ReadNcclXml(const XmlDocument& document) {
  return NcclReader(document).Read();
}

}  // namespace berth::discovery
