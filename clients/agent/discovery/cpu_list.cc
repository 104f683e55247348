#include "clients/agent/discovery/cpu_list.h"

#include <cstdlib>
#include <memory>

namespace berth::discovery {
namespace {

constexpr size_t kMaxMaskBytes = 4608;  // 512 words of 32 CPUs

struct FreeSet {
  void operator()(hwloc_cpuset_t set) const { hwloc_bitmap_free(set); }
};

}  // namespace

std::string CpuList(hwloc_const_cpuset_t set) {
  if (set == nullptr || hwloc_bitmap_iszero(set) || hwloc_bitmap_weight(set) < 0) return "";
  char* text = nullptr;
  if (hwloc_bitmap_list_asprintf(&text, set) < 0) return "";
  std::string list = text;
  free(text);
  return list;
}

std::string CpuList(const std::string& mask) {
  if (mask.empty() || mask.size() > kMaxMaskBytes) return "";
  const std::unique_ptr<hwloc_bitmap_s, FreeSet> set(hwloc_bitmap_alloc());
  return hwloc_bitmap_sscanf(set.get(), mask.c_str()) == 0 ? CpuList(set.get()) : "";
}

}  // namespace berth::discovery
