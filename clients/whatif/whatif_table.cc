#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "clients/sim/output.h"
#include "clients/whatif/whatif_command.h"

namespace berth {
namespace {

constexpr int kMostJobsShown = 50;

std::string Ahead(bool known, double seconds) {
  if (!known) return "-";
  return absl::FormatDuration(absl::Seconds(static_cast<int64_t>(seconds)));
}

std::string PerCent(const google::protobuf::Map<std::string, double>& amounts,
                    const std::string& kind) {
  const auto found = amounts.find(kind);
  return absl::StrFormat("%.1f %%", found == amounts.end() ? 0 : 100 * found->second);
}

std::string Amount(const google::protobuf::Map<std::string, double>& amounts,
                   const std::string& kind) {
  const auto found = amounts.find(kind);
  const double amount = found == amounts.end() ? 0 : found->second;
  if (kind == "cpu") return absl::StrFormat("%.2f", amount / 1000);
  if (kind == "memory") return absl::StrFormat("%.2f GiB", amount / (1 << 30));
  return absl::StrFormat("%.2f", amount);
}

class Table {
 public:
  explicit Table(const sim::v1::WhatifResult& result) : result_(result) {}

  std::string Take() {
    Head();
    Row("", "as it is", "changed");
    Row("started", absl::StrCat(result_.before().started()),
        absl::StrCat(result_.after().started()));
    Wait("mean wait", &sim::v1::Distribution::mean);
    Wait("median wait", &sim::v1::Distribution::median);
    Wait("longest wait", &sim::v1::Distribution::max);
    Row("tasks evicted", absl::StrCat(result_.before().evictions()),
        absl::StrCat(result_.after().evictions()));
    const std::map<std::string, double> kinds(result_.before().utilisation().begin(),
                                              result_.before().utilisation().end());
    for (const auto& [kind, part] : kinds) {
      Row(absl::StrCat("use of ", kind), PerCent(result_.before().utilisation(), kind),
          PerCent(result_.after().utilisation(), kind));
      for (const sim::v1::WhatifQueue& queue : result_.queues()) {
        Row(absl::StrCat("  held by ", queue.name()), Amount(queue.before(), kind),
            Amount(queue.after(), kind));
      }
    }
    for (const sim::v1::WhatifQueue& queue : result_.queues()) {
      if (queue.waiting() == 0) continue;
      Row(absl::StrCat("starts in ", queue.name(), ", of ", queue.waiting()),
          absl::StrCat(queue.started_before()), absl::StrCat(queue.started_after()));
    }
    Jobs();
    return std::move(text_);
  }

 private:
  void Head() {
    absl::StrAppendFormat(
        &text_, "%s: revision %d of %s, %d jobs wait, %d hold something; %s ahead\n",
        result_.snapshot(), result_.revision(),
        absl::FormatTime(absl::FromUnixSeconds(result_.time().seconds()), absl::UTCTimeZone()),
        result_.waiting(), result_.running(),
        absl::FormatDuration(absl::Seconds(result_.horizon())));
    if (result_.without_walltime() > 0) {
      absl::StrAppendFormat(&text_, "%d jobs have no walltime: how long they run is assumed\n",
                            result_.without_walltime());
    }
    for (const std::string& change : result_.changes()) {
      absl::StrAppend(&text_, "changed: ", change, "\n");
    }
  }
  void Row(const std::string& name, const std::string& before, const std::string& after) {
    absl::StrAppendFormat(&text_, "%-32s %16s", name, before);
    if (result_.has_after()) absl::StrAppendFormat(&text_, " %16s", after);
    text_ += "\n";
  }
  void Wait(const char* name, double (sim::v1::Distribution::*of)() const) {
    const auto told = [&](const sim::v1::WhatifSide& side) {
      return Ahead(side.started() > 0, (side.wait().*of)());
    };
    Row(name, told(result_.before()), told(result_.after()));
  }
  void Jobs() {
    for (int i = 0; i < result_.jobs_size() && i < kMostJobsShown; ++i) {
      const sim::v1::WhatifJob& job = result_.jobs(i);
      Row(absl::StrCat("starts: ", job.name()), Ahead(job.has_start_before(), job.start_before()),
          Ahead(job.has_start_after(), job.start_after()));
    }
    if (result_.jobs_size() > kMostJobsShown) {
      absl::StrAppendFormat(&text_, "and %d more: -o json\n", result_.jobs_size() - kMostJobsShown);
    }
  }

  const sim::v1::WhatifResult& result_;
  std::string text_;
};

}  // namespace

std::string PrintedWhatif(const sim::v1::WhatifResult& result, absl::string_view format) {
  return format == "table" ? Table(result).Take() : PrintedMessage(result, format);
}

}  // namespace berth
