#include "clients/agent/discovery/wire.h"

#include <cstring>
#include <type_traits>

#include "clients/agent/discovery/fields.h"
#include "clients/agent/discovery/names.h"

namespace berth::discovery {
namespace {

constexpr absl::string_view kMagic = "berth machine 1\n";
constexpr absl::string_view kReportMagic = "berth gpus 1\n";

// Numbers are eight bytes in host order; strings and lists are preceded by their length.
class Writer {
 public:
  explicit Writer(absl::string_view magic) : bytes(magic) {}
  template <class T>
  void operator()(const char*, const T& value) {
    Put(value);
  }
  std::string bytes;

 private:
  template <class T>
  void Put(const T& value) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      const int64_t number = static_cast<int64_t>(value);
      bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    } else {
      Fields(*this, value);
    }
  }
  void Put(const std::string& value) {
    Put(value.size());
    bytes += value;
  }
  void Put(const PciAddress& value) {
    Put(value.domain), Put(value.bus), Put(value.device), Put(value.function);
  }
  template <class T>
  void Put(const std::vector<T>& values) {
    Put(values.size());
    for (const T& value : values) Put(value);
  }
};

// After the first error, everything reads as zero or empty.
class WireReader {
 public:
  explicit WireReader(absl::string_view bytes) : left_(bytes) {}
  template <class T>
  void operator()(const char*, T& value) {
    Get(value);
  }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && left_.empty(); }

 private:
  template <class T>
  void Get(T& value) {
    if constexpr (std::is_enum_v<T>) {
      const int64_t number = Number();
      if (number < 0 || number >= EnumCount(T{})) ok_ = false;
      if (ok_) value = static_cast<T>(number);
    } else if constexpr (std::is_integral_v<T>) {
      const int64_t number = Number();
      value = static_cast<T>(number);
      if (static_cast<int64_t>(value) != number) ok_ = false;
    } else {
      Fields(*this, value);
    }
  }
  void Get(std::string& value) {
    const size_t size = Count();
    value.assign(left_.data(), size);
    left_.remove_prefix(size);
  }
  void Get(PciAddress& value) {
    Get(value.domain), Get(value.bus), Get(value.device), Get(value.function);
  }
  template <class T>
  void Get(std::vector<T>& values) {
    const size_t size = Count();
    for (size_t i = 0; i < size && ok_; ++i) Get(values.emplace_back());
  }
  int64_t Number() {
    int64_t number = 0;
    if (!ok_ || left_.size() < sizeof number) return ok_ = false, 0;
    std::memcpy(&number, left_.data(), sizeof number);
    left_.remove_prefix(sizeof number);
    return number;
  }
  // Every element takes at least one byte.
  size_t Count() {
    const int64_t count = Number();
    if (count < 0 || static_cast<size_t>(count) > left_.size()) return ok_ = false, 0;
    return static_cast<size_t>(count);
  }

  absl::string_view left_;
  bool ok_ = true;
};

bool IsSquare(const std::vector<std::vector<Distance>>& rows, size_t height, size_t width) {
  if (rows.size() != height) return false;
  for (const auto& row : rows) {
    if (row.size() != width) return false;
  }
  return true;
}

template <class T>
bool PointsInside(const std::vector<T>& devices, size_t nodes) {
  for (const T& device : devices) {
    if (device.pci_node < -1 || device.pci_node >= static_cast<int64_t>(nodes)) return false;
  }
  return true;
}

bool IsSound(const Machine& machine) {
  for (size_t i = 0; i < machine.pci.size(); ++i) {
    const int32_t parent = machine.pci[i].parent;
    if (parent < -1 || parent >= static_cast<int64_t>(i)) return false;
  }
  return PointsInside(machine.gpus, machine.pci.size()) &&
         PointsInside(machine.nics, machine.pci.size()) &&
         IsSquare(machine.gpu_gpu, machine.gpus.size(), machine.gpus.size()) &&
         IsSquare(machine.gpu_nic, machine.gpus.size(), machine.nics.size());
}

}  // namespace

std::string EncodeMachine(const Machine& machine) {
  Writer writer(kMagic);
  Fields(writer, machine);
  return std::move(writer.bytes);
}

absl::StatusOr<Machine> DecodeMachine(absl::string_view bytes) {
  if (bytes.size() > kMaxWireBytes) return absl::InternalError("the probe's response is too long");
  if (bytes.substr(0, kMagic.size()) != kMagic)
    return absl::InternalError("the probe's response has another version");
  WireReader reader(bytes.substr(kMagic.size()));
  Machine machine;
  Fields(reader, machine);
  if (!reader.done() || !IsSound(machine))
    return absl::InternalError("the probe's response is damaged");
  return machine;
}

std::string EncodeReport(const GpuReport& report) {
  Writer writer(kReportMagic);
  Fields(writer, report);
  return std::move(writer.bytes);
}

absl::StatusOr<GpuReport> DecodeReport(absl::string_view bytes) {
  if (bytes.substr(0, kReportMagic.size()) != kReportMagic)
    return absl::InternalError("the probe's GPU report has another version");
  WireReader reader(bytes.substr(kReportMagic.size()));
  GpuReport report;
  Fields(reader, report);
  if (!reader.done()) return absl::InternalError("the probe's GPU report is damaged");
  return report;
}

}  // namespace berth::discovery
