#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "offline/sim/output.h"
#include "offline/whatif/whatif_command.h"
#include "support/visible_message.h"

namespace berth {
namespace {

constexpr int kMaxShownJobs = 50;

using Amounts = google::protobuf::Map<std::string, double>;

std::string Ahead(double seconds) {
  return absl::FormatDuration(absl::Seconds(static_cast<int64_t>(seconds)));
}
std::string Count(double count) { return absl::StrFormat("%.0f", count); }
std::string PerCent(double part) { return absl::StrFormat("%.1f %%", 100 * part); }

double Find(const Amounts& amounts, const std::string& kind) {
  const auto found = amounts.find(kind);
  return found == amounts.end() ? 0 : found->second;
}

// Formats the amount of a resource.
using Writer = std::function<std::string(double)>;
Writer AmountOf(const std::string& kind) {
  if (kind == "cpu") return [](double a) { return absl::StrFormat("%.2f", a / 1000); };
  if (kind == "memory") return [](double a) { return absl::StrFormat("%.2f GiB", a / (1 << 30)); };
  return [](double a) { return absl::StrFormat("%.2f", a); };
}

class Table {
 public:
  explicit Table(const sim::v1::WhatifResult& result) : result_(result) {}

  std::string Take() {
    const sim::v1::WhatifSide &before = result_.before(), &after = result_.after();
    Head();
    absl::StrAppendFormat(&text_, "%-32s %16s", "", "as it is");
    if (result_.has_after()) absl::StrAppendFormat(&text_, " %16s %16s", "changed", "difference");
    text_ += "\n";
    Row("started", static_cast<double>(before.started()), static_cast<double>(after.started()),
        Count);
    Waits("wait", before.wait(), after.wait());
    Row("tasks evicted", static_cast<double>(before.evictions()),
        static_cast<double>(after.evictions()), Count);
    std::set<std::string> kinds;
    for (const auto& [kind, part] : before.utilisation()) kinds.insert(kind);
    for (const auto& [kind, part] : after.utilisation()) kinds.insert(kind);
    for (const std::string& kind : kinds) {
      Row(absl::StrCat("use of ", kind), Find(before.utilisation(), kind),
          Find(after.utilisation(), kind), PerCent);
    }
    for (const sim::v1::WhatifQueue& queue : result_.queues()) Queue(queue, kinds);
    Jobs();
    return std::move(text_);
  }

 private:
  void Head() {
    absl::StrAppendFormat(
        &text_, "%s: revision %d of %s, %d jobs pending, %d hold resources; %s ahead\n",
        result_.snapshot(), result_.revision(),
        absl::FormatTime(absl::FromUnixSeconds(result_.time().seconds()), absl::UTCTimeZone()),
        result_.waiting(), result_.running(),
        absl::FormatDuration(absl::Seconds(result_.horizon())));
    if (result_.without_walltime() > 0) {
      absl::StrAppendFormat(&text_, "%d jobs have no walltime: their run time is assumed\n",
                            result_.without_walltime());
    }
    for (const std::string& change : result_.changes()) {
      absl::StrAppend(&text_, "changed: ", change, "\n");
    }
  }

  // nullopt: not within the horizon.
  void Row(const std::string& name, std::optional<double> before, std::optional<double> after,
           const Writer& write) {
    const auto shown = [&](std::optional<double> value) {
      return value.has_value() ? write(*value) : "-";
    };
    absl::StrAppendFormat(&text_, "%-32s %16s", name, shown(before));
    if (result_.has_after()) {
      std::string difference = "-";
      if (before.has_value() && after.has_value()) {
        const double more = *after - *before;
        difference = absl::StrCat(more < 0 ? "-" : more > 0 ? "+" : "", write(std::abs(more)));
      }
      absl::StrAppendFormat(&text_, " %16s %16s", shown(after), difference);
    }
    text_ += "\n";
  }
  void Waits(const std::string& name, const sim::v1::Distribution& before,
             const sim::v1::Distribution& after) {
    if (result_.waiting() == 0) return;
    Row(absl::StrCat(name, ", mean"), before.mean(), after.mean(), Ahead);
    Row(absl::StrCat(name, ", median"), before.median(), after.median(), Ahead);
    Row(absl::StrCat(name, ", longest"), before.max(), after.max(), Ahead);
  }

  void Queue(const sim::v1::WhatifQueue& queue, const std::set<std::string>& kinds) {
    const std::string of = absl::StrCat(queue.name(), ": ");
    Row(absl::StrCat(of, "dominant share"), queue.share_before(), queue.share_after(), PerCent);
    for (const std::string& kind : kinds) {
      if (Find(queue.before(), kind) == 0 && Find(queue.after(), kind) == 0) continue;
      Row(absl::StrCat(of, kind, " held"), Find(queue.before(), kind), Find(queue.after(), kind),
          AmountOf(kind));
    }
    if (queue.waiting() == 0) return;
    Row(absl::StrCat(of, "started of ", queue.waiting()),
        static_cast<double>(queue.started_before()), static_cast<double>(queue.started_after()),
        Count);
    Waits(absl::StrCat(of, "wait"), queue.wait_before(), queue.wait_after());
  }

  void Jobs() {
    const auto start = [](bool known, double time) {
      return known ? std::optional<double>(time) : std::nullopt;
    };
    for (int i = 0; i < result_.jobs_size() && i < kMaxShownJobs; ++i) {
      const sim::v1::WhatifJob& job = result_.jobs(i);
      Row(absl::StrCat("starts: ", job.name()), start(job.has_start_before(), job.start_before()),
          start(job.has_start_after(), job.start_after()), Ahead);
    }
    if (result_.jobs_size() > kMaxShownJobs) {
      absl::StrAppendFormat(&text_, "and %d more: -o json\n", result_.jobs_size() - kMaxShownJobs);
    }
  }

  const sim::v1::WhatifResult& result_;
  std::string text_;
};

}  // namespace

std::string PrintedWhatif(const sim::v1::WhatifResult& result, absl::string_view format) {
  if (format != "table") return PrintedFigures(result, format);
  const sim::v1::WhatifResult visible = VisibleCopy(result);  // the table keeps a reference
  return Table(visible).Take();
}

}  // namespace berth
