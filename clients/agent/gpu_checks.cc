#include "clients/agent/gpu_checks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace berth {
namespace {

using discovery::GpuSample;

// DCGM's limits: "CRC errors only matter at rates of 100+ per second"; a single replay or recovery
// matters (DCGM, dcgm_gpu_hardware_limits.h and its health watch for NVLink).
constexpr int64_t kMaxCrcPerSecond = 100;
constexpr size_t kMaxXidText = 200;

// NVIDIA's "Xid Catalog" (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html): XIDs whose
// immediate action is RESET_GPU, RESTART_BM or CHECK_MECHANICALS, or whose workflow ends in a reset
// (48, 74). These do not take a GPU out of service:
//  - RESTART_APP and IGNORE, such as 13, 31, 43, 45, 68, 69, and 94 (a memory error contained to
//    one program), which the counters of gpu-ecc and gpu-memory show;
//  - 63 (a row is remapped), which gpu-memory reports better;
//  - 144..150 (NVLink 5), which depend on a subcode that is not reported, and 155 (links taken down
//    on purpose): if they need a reset, the driver's recovery action says so, as with 154.
struct KnownXid {
  int64_t xid;
  const char* what;
};
constexpr KnownXid kBadXids[] = {
    {46, "GPU stopped processing"},
    {48, "double bit ECC error"},
    {54, "auxiliary power is not connected"},
    {62, "internal micro-controller halt"},
    {64, "memory could not be retired or remapped"},
    {74, "NVLink error"},
    {79, "GPU has fallen off the bus"},
    {95, "uncontained memory error"},
    {109, "context switch timeout"},
    {110, "security fault"},
    {119, "GSP does not respond"},
    {120, "GSP error"},
    {136, "NVLink training failed"},
    {140, "unrecovered ECC error"},
    {143, "GPU initialization error"},
    {156, "resource retirement"},
    {158, "GPU fatal timeout"},
};

// nvmlDeviceGpuRecoveryAction_t
const char* Wanted(int64_t action) {
  switch (action) {
    case 1:
      return "the driver requests a reset";
    case 2:
      return "the driver requests a reboot of the machine";
    case 3:
      return "the driver requests to drain its peer traffic";
    case 4:
      return "the driver requests to drain and reset it";
    default:
      return "the driver requests a recovery";
  }
}

CheckResult Result(const char* check, const GpuSample& gpu, std::string problem) {
  const bool good = problem.empty();
  return {.check = check,
          .good = good,
          .message = good ? "" : absl::StrCat(gpu.uuid, ": ", problem),
          .device = gpu.uuid,
          .certain = check != kGpuNvlinkCheck};
}

CheckResult Ecc(const GpuSample& gpu) {
  if (gpu.ecc_uncorrected <= 0) return Result(kGpuEccCheck, gpu, "");
  return Result(kGpuEccCheck, gpu,
                absl::StrCat(gpu.ecc_uncorrected, " uncorrected memory errors since driver start"));
}

}  // namespace

const char* BadXid(int64_t xid) {
  for (const KnownXid& known : kBadXids) {
    if (known.xid == xid) return known.what;
  }
  return nullptr;
}

GpuChecks::GpuChecks(const config::v1::Health& config)
    : bad_(config.bad_xids().begin(), config.bad_xids().end()),
      ignored_(config.ignored_xids().begin(), config.ignored_xids().end()),
      max_crc_(config.max_nvlink_crc_per_second() > 0 ? config.max_nvlink_crc_per_second()
                                                      : kMaxCrcPerSecond) {}

CheckResult GpuChecks::NoAnswer(const std::string& why) {
  return {.check = kGpuDriverCheck, .good = false, .message = why};
}

std::vector<CheckResult> GpuChecks::Judge(const discovery::GpuReport& report, absl::Duration now) {
  std::vector<CheckResult> results = {{.check = kGpuDriverCheck}};
  for (const GpuSample& gpu : report.gpus) {
    if (gpu.kind != "gpu") continue;  // an instance's counters are those of its GPU
    NoteXids(gpu);
    results.push_back(Xid(gpu));
    results.push_back(Ecc(gpu));
    results.push_back(Memory(gpu));
    results.push_back(Nvlink(gpu, now));
  }
  return results;
}

void GpuChecks::NoteXids(const GpuSample& gpu) {
  for (const int64_t xid : gpu.xids) {
    last_xids_[gpu.uuid] = xid;
    const char* what = BadXid(xid);
    if ((what == nullptr && !bad_.contains(xid)) || ignored_.contains(xid)) continue;
    const std::string text =
        absl::StrCat("XID ", xid, what == nullptr ? "" : ": ", what == nullptr ? "" : what);
    std::string& known = xids_[gpu.uuid];
    if (known.size() < kMaxXidText && known.find(text) == std::string::npos)
      absl::StrAppend(&known, known.empty() ? "" : ", ", text);
  }
}

// A lost GPU and one that needs a reset are the same to its users.
CheckResult GpuChecks::Xid(const GpuSample& gpu) const {
  std::vector<std::string> problems;
  if (!gpu.problem.empty()) problems.push_back(gpu.problem);
  if (const auto known = xids_.find(gpu.uuid); known != xids_.end())
    problems.push_back(known->second);
  if (gpu.recovery_action > 0) problems.emplace_back(Wanted(gpu.recovery_action));
  return Result(kGpuXidCheck, gpu, absl::StrJoin(problems, "; "));
}

CheckResult GpuChecks::Memory(const GpuSample& gpu) const {
  if (gpu.replace_failed > 0) return Result(kGpuMemoryCheck, gpu, "a row could not be remapped");
  const bool pending = gpu.replace_pending > 0;
  return Result(kGpuMemoryCheck, gpu, pending ? "bad memory is pending a reset" : "");
}

// A reset sets the counters back to 0: then there is nothing to compare.
CheckResult GpuChecks::Nvlink(const GpuSample& gpu, absl::Duration now) {
  const Links seen = {now, std::max<int64_t>(gpu.nvlink_replays, 0),
                      std::max<int64_t>(gpu.nvlink_recoveries, 0),
                      std::max<int64_t>(gpu.nvlink_crc, 0)};
  const auto [at, first] = links_.try_emplace(gpu.uuid, seen);
  const Links before = std::exchange(at->second, seen);
  const double seconds = absl::ToDoubleSeconds(now - before.when);
  if (first || seconds <= 0) return Result(kGpuNvlinkCheck, gpu, "");
  std::vector<std::string> problems;
  const auto more = [&](int64_t then, int64_t counted, const char* what) {
    if (counted > then) problems.push_back(absl::StrCat(counted - then, " ", what));
  };
  more(before.replays, seen.replays, "replays");
  more(before.recoveries, seen.recoveries, "recoveries");
  const double crc = static_cast<double>(seen.crc - before.crc) / seconds;
  if (crc >= static_cast<double>(max_crc_))
    problems.push_back(absl::StrCat(static_cast<int64_t>(crc), " CRC errors per second"));
  if (problems.empty()) return Result(kGpuNvlinkCheck, gpu, "");
  return Result(kGpuNvlinkCheck, gpu, absl::StrCat("NVLink: ", absl::StrJoin(problems, ", ")));
}

}  // namespace berth
