#include "absl/strings/str_cat.h"
#include "clients/cli/kubernetes_pod.h"
#include "clients/cli/volcano.h"

namespace berth {
namespace {

using Amounts = std::map<std::string, int64_t>;  // by Berth's resource

void CollectAmounts(const std::string& path, const Labels& in, ForeignDocument& document,
                    Amounts* amounts) {
  for (const auto& entry : std::map<std::string, std::string>(in.begin(), in.end())) {
    const std::string entry_path = absl::StrCat(path, "[\"", entry.first, "\"]");
    const std::string name = BerthResource(entry.first);
    if (name.empty()) {
      document.Error(entry_path, absl::StrCat("unsupported resource \"", entry.first, "\""));
      continue;
    }
    const absl::StatusOr<int64_t> amount = ParseKubernetesAmount(name, entry.second);
    if (!amount.ok()) {
      document.Error(entry_path, absl::StrCat(entry.first, ": ", amount.status().message()));
      continue;
    }
    int64_t& most = (*amounts)[name];
    most = std::max(most, *amount);
  }
}

}  // namespace

void ConvertResources(const std::string& path, const kubernetes::v1::Resources& in, ForeignJob* job,
                      v1::ResourceRequest* out) {
  Amounts amounts;
  CollectAmounts(path + ".requests", in.requests(), job->document(), &amounts);
  CollectAmounts(path + ".limits", in.limits(), job->document(), &amounts);
  for (const auto& amount : amounts) {
    if (amount.first == "cpu") {
      out->set_cpu_millis(amount.second);
    } else if (amount.first == "memory") {
      out->set_memory_bytes(amount.second);
    } else if (amount.first == "scratch") {
      out->set_scratch_bytes(amount.second);
    } else if (amount.second > 0) {
      v1::DeviceRequest& device = *out->add_devices();
      device.set_kind(amount.first);
      device.set_count(static_cast<int32_t>(std::min<int64_t>(amount.second, INT32_MAX)));
    }
  }
}

}  // namespace berth
