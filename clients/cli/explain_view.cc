#include "clients/cli/explain_view.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "berth/v1/job.pb.h"
#include "berth/v1/types.pb.h"
#include "clients/cli/human.h"
#include "clients/cli/job_view.h"
#include "clients/cli/page.h"
#include "clients/cli/table.h"
#include "google/protobuf/descriptor.h"
#include "support/quantity.h"
#include "support/yaml_proto_scalar.h"

namespace berth {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

std::string Ordinal(int64_t number) {
  const bool teen = number / 10 % 10 == 1;
  const int64_t last = teen ? 0 : number % 10;
  return absl::StrCat(number, last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

// "1 job", "3 jobs".
std::string Count(int64_t number, const std::string& noun) {
  return absl::StrCat(number, " ", noun, number == 1 ? "" : "s");
}

// "2026-11-20 14:05:00 (in 25m)"
std::string AtTime(const google::protobuf::Timestamp& time, const Session& session) {
  const absl::Duration ahead = TimeFrom(time) - session.Now();
  return absl::StrCat(
      HumanTime(true, time, session.io().time_zone),
      ahead > absl::ZeroDuration() ? absl::StrCat(" (in ", HumanDuration(ahead), ")") : " (now)");
}

}  // namespace

std::string EstimateSentence(const v1::EstimateJobResponse& estimate, const Session& session) {
  if (!estimate.unknown().empty()) return "unknown: " + estimate.unknown();
  if (!estimate.has_latest()) return "";
  const absl::TimeZone zone = session.io().time_zone;
  std::string text = estimate.history_jobs() == 0
                         ? absl::StrCat(AtTime(estimate.latest(), session),
                                        " at the latest, if all keep to their walltimes")
                         : absl::StrCat("about ", AtTime(estimate.likely(), session), ", between ",
                                        HumanTime(true, estimate.earliest(), zone), " and ",
                                        HumanTime(true, estimate.latest(), zone),
                                        estimate.predicted() ? ", predicted from " : ", based on ",
                                        Count(estimate.history_jobs(), "ended job"));
  if (estimate.jobs_before() > 0) {
    absl::StrAppend(&text, "; ", Count(estimate.jobs_before(), "job"),
                    estimate.jobs_before() == 1 ? " starts first" : " start first");
  }
  return text;
}

namespace {

std::string ReasonSentence(const v1::WaitReason& reason, const Session& session) {
  return HumanReasonUntil(reason, session.io().time_zone);
}

// "bert is Pending, 2nd of 5 pending jobs in its queue.\nReasons: ...; ..."
std::string Opening(const v1::ExplainJobResponse& answer, const Session& session) {
  std::string text =
      absl::StrCat(answer.job(), " is ", Paint(JobStateWord(answer.state()), session.colors()));
  if (answer.reasons().empty()) return absl::StrCat(text, ": it waits for nothing.\n");
  if (answer.position() > 0) {
    absl::StrAppend(&text, ", ", Ordinal(answer.position()), " of ",
                    Count(answer.queue_jobs(), "pending job"), " in its queue");
  }
  std::vector<std::string> reasons;
  for (const v1::WaitReason& reason : answer.reasons()) {
    reasons.push_back(ReasonSentence(reason, session));
  }
  return absl::StrCat(text, ".\nReasons: ", absl::StrJoin(reasons, "; "), ".\n");
}

// Constraints that reject nothing are shown only with -o wide.
std::string ConstraintTable(const v1::GroupConstraints& group, const Session& session) {
  Table table({{"CONSTRAINT"},
               {"NODES", Column::kRight},
               {"DEVICES", Column::kRight},
               {"IN ORDER", Column::kRight},
               {"DEVICES IN ORDER", Column::kRight | Column::kWide}});
  for (const v1::ConstraintCount& count : group.constraints()) {
    if (count.nodes_alone() == 0 && session.options.format != Format::kWide) continue;
    table.AddRow({{count.name()},
                  {absl::StrCat(count.nodes_alone())},
                  {absl::StrCat(count.devices_alone())},
                  {absl::StrCat(count.nodes_in_order())},
                  {absl::StrCat(count.devices_in_order())}});
  }
  table.AddRow({{"left"}, {""}, {""}, {absl::StrCat(group.nodes_left())}, {""}});
  TableStyle style = session.table_style();
  style.headers = true;
  return table.Render(style);
}

// "blocked by free and labels together"
std::string BlockingText(const v1::GroupConstraints& group) {
  const auto& names = group.blocking();
  if (names.empty()) return "";
  if (names.size() == 1) return absl::StrCat("blocked by ", names[0], " alone");
  const std::string first = absl::StrJoin(names.begin(), names.end() - 1, ", ");
  return absl::StrCat("blocked by ", first, " and ", names[names.size() - 1], " together");
}

std::string GroupText(const v1::GroupConstraints& group, const Session& session) {
  std::string text =
      absl::StrCat(Count(group.nodes(), "node"), " with ", Count(group.devices(), "free device"),
                   ", rejected by:\n", ConstraintTable(group, session));
  std::vector<std::string> parts;
  if (const std::string blocking = BlockingText(group); !blocking.empty()) {
    parts.push_back(blocking);
  }
  if (group.largest_block() > 0) {
    parts.push_back(absl::StrCat("the most free devices on one node: ", group.largest_block()));
  }
  if (group.has_image_nodes()) {
    parts.push_back(absl::StrCat(Count(group.image_nodes(), "node"),
                                 group.image_nodes() == 1 ? " holds" : " hold", " its image"));
  }
  if (!parts.empty()) absl::StrAppend(&text, absl::StrJoin(parts, "; "), "\n");
  return text;
}

// "job", "group worker", "each partition of worker"
std::string ScopeName(const v1::TopologyScope& scope) {
  if (scope.level() == v1::TopologyScope::JOB) return "job";
  const bool group = scope.level() == v1::TopologyScope::GROUP;
  return absl::StrCat(group ? "group " : "each partition of ", scope.group());
}

std::string TierText(int32_t tier) { return tier == 0 ? "any" : absl::StrCat(tier); }

std::string ScopeText(const v1::TopologyScope& scope, const Session& session) {
  std::string text =
      absl::StrCat(Count(scope.needed_tasks(), "task"), " in one HyperNode of kind ", scope.kind(),
                   ", highest tier ", TierText(scope.highest_tier()), ": ", scope.domains_now(),
                   " of ", Count(scope.domains(), "HyperNode"), " have room now, ",
                   scope.domains_empty(), " if they were empty\n");
  if (scope.best().empty()) return text;
  Table table({{"HYPERNODE"}, {"TIER"}, {"ROOM", Column::kRight}, {"EMPTY", Column::kRight}, {""}});
  for (const v1::DomainFit& domain : scope.best()) {
    table.AddRow({{domain.hyper_node().empty() ? "(all nodes)" : domain.hyper_node()},
                  {TierText(domain.tier())},
                  {absl::StrCat(domain.fit_now())},
                  {absl::StrCat(domain.fit_empty())},
                  {domain.degraded() ? "degraded" : ""}});
  }
  TableStyle style = session.table_style();
  style.headers = true;
  return absl::StrCat(text, table.Render(style));
}

std::string HolderTable(const v1::ExplainJobResponse& answer, const Session& session) {
  if (answer.holders().empty()) return "";
  const std::string& resource = answer.reasons().empty() ? "" : answer.reasons(0).resource();
  Table table({{"JOB"}, {"QUEUE"}, {"AMOUNT", Column::kRight}, {"ENDS"}});
  for (const v1::Holder& holder : answer.holders()) {
    table.AddRow({{holder.job()},
                  {holder.queue()},
                  {HumanAmount(resource, holder.amount())},
                  {holder.has_ends() ? AtTime(holder.ends(), session) : ""}});
  }
  TableStyle style = session.table_style();
  style.headers = true;
  return table.Render(style);
}

// How a manifest writes the amount or the enum value of a field.
std::string ManifestValue(const FieldDescriptor& field, const std::string& value) {
  if (field.enum_type() != nullptr) {
    const auto* known = field.enum_type()->FindValueByName(value);
    return known == nullptr ? value : EnumText(known);
  }
  int64_t amount = 0;
  if (!absl::SimpleAtoi(value, &amount)) return value;
  switch (field.options().GetExtension(v1::quantity)) {
    case v1::CPU_MILLIS:
      return FormatCpuMillis(amount);
    case v1::BYTES:
      return FormatBytes(amount);
    default:
      return value;
  }
}

// The change as a manifest writes it; the server names fields of the API.
//
//   "groups[0].resources.cpu_millis", "8000"     -> "groups[0].resources.cpu: 8"
//   "groups[0].resources.devices[0].min_link", "" -> "omit groups[0].resources.devices[0].minLink"
std::string ManifestChange(const std::string& path, const std::string& value) {
  const Descriptor* type = v1::JobSpec::descriptor();
  const FieldDescriptor* field = nullptr;
  std::vector<std::string> keys;
  for (const absl::string_view part : absl::StrSplit(path, '.')) {
    const size_t name_end = std::min(part.find('['), part.size());
    const std::string name(part.substr(0, name_end));
    field = type == nullptr ? nullptr : type->FindFieldByName(name);
    type = field == nullptr ? nullptr : field->message_type();
    keys.push_back(
        absl::StrCat(field == nullptr ? name : field->json_name(), part.substr(name_end)));
  }
  const std::string key = absl::StrJoin(keys, ".");
  if (value.empty()) return absl::StrCat("omit ", key);
  return absl::StrCat(key, ": ", field == nullptr ? value : ManifestValue(*field, value));
}

std::string RemedyAction(const v1::Remedy& remedy, const Session& session) {
  if (remedy.kind() == v1::Remedy::WAIT) {
    return absl::StrCat("wait until ",
                        HumanTime(true, remedy.wait_until(), session.io().time_zone));
  }
  return ManifestChange(remedy.field(), remedy.value());
}

std::string RemedyTable(const v1::ExplainJobResponse& answer, const Session& session) {
  if (answer.remedies().empty() && !answer.groups().empty())
    return "no single change is known that would start it\n";
  if (answer.remedies().empty()) return "";
  Table table({{"CHANGE"}, {"EFFECT"}});
  for (const v1::Remedy& remedy : answer.remedies()) {
    const bool later = !remedy.starts_now() && remedy.kind() != v1::Remedy::WAIT;
    table.AddRow({{RemedyAction(remedy, session)},
                  {absl::StrCat(remedy.detail(), later ? "; not immediately" : "")}});
  }
  TableStyle style = session.table_style();
  style.headers = false;
  return table.Render(style);
}

}  // namespace

std::string ExplanationText(const v1::ExplainJobResponse& answer, const Session& session) {
  Page page;
  for (const v1::GroupConstraints& group : answer.groups()) {
    page.AddSection(
        absl::StrCat("Group ", group.group(), " (", Count(group.needed_tasks(), "pending task"),
                     ", room now for ", group.tasks_left(), ")"),
        GroupText(group, session));
  }
  for (const v1::TopologyScope& scope : answer.topology()) {
    page.AddSection("Topology of " + ScopeName(scope), ScopeText(scope, session));
  }
  const std::string resource = answer.reasons().empty() ? "" : answer.reasons(0).resource();
  page.AddSection(absl::StrCat(resource, " is held by"), HolderTable(answer, session));
  page.AddSection("Starts", EstimateSentence(answer.estimate(), session));
  if (answer.has_reservation()) {
    page.AddSection("Reserved", ReservationText(answer.reservation(), session));
  }
  page.AddSection("To start it", RemedyTable(answer, session));
  return Opening(answer, session) + page.Text();
}

std::string EstimateText(const std::string& job, const v1::EstimateJobResponse& estimate,
                         const Session& session) {
  const std::string sentence = EstimateSentence(estimate, session);
  if (sentence.empty()) return absl::StrCat(job, " is not pending\n");
  return absl::StrCat(job, " starts: ", sentence, "\n");
}

}  // namespace berth
