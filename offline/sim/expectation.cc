// Both sides are converted to one form: the expectation with expanded patterns, and a message of
// the same type with the actual values of what it names. Then the fields are compared one by one.
#include "offline/sim/expectation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "offline/sim/expectation_text.h"
#include "offline/sim/names.h"
#include "offline/sim/specs.h"
#include "server/convert/values.h"
#include "support/name_pattern.h"
#include "support/yaml_proto_scalar.h"

namespace berth {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Map;
using google::protobuf::Message;
using google::protobuf::Reflection;
using sim::v1::Expectation;

// ---- The expanded expectation.

absl::Status ExpandList(RepeatedPtrField<std::string>* places) {
  auto expanded = ExpandPlaces({places->begin(), places->end()});
  if (!expanded.ok()) return expanded.status();
  places->Assign(expanded->begin(), expanded->end());
  return absl::OkStatus();
}

absl::Status ExpandDecision(std::string* text) {
  std::vector<std::string> words = absl::StrSplit(*text, ' ', absl::SkipEmpty());
  auto expanded = ExpandPlaces(words);
  if (!expanded.ok()) return expanded.status();
  *text = absl::StrJoin(*expanded, " ");
  return absl::OkStatus();
}

absl::Status ExpandAmounts(AmountTexts* amounts, const std::string& path) {
  auto parsed = ToAmounts(*amounts, true, path);
  if (!parsed.ok()) return parsed.status();
  for (const NamedAmount& one : *parsed) {
    (*amounts)[one.name] = AmountText(one.name, one.amount);
  }
  return absl::OkStatus();
}

absl::Status ExpandTasks(sim::v1::ExpectedJob* job) {
  Map<std::string, sim::v1::ExpectedTask> tasks;
  for (const std::string& pattern : NamesIn(job->tasks())) {
    auto names = ExpandNamePattern(pattern);
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) tasks[name] = job->tasks().at(pattern);
  }
  job->mutable_tasks()->swap(tasks);
  return absl::OkStatus();
}

absl::Status ExpandCounts(sim::v1::ExpectedJob* job) {
  Map<std::string, int32_t> counts;
  for (const std::string& state : NamesIn(job->count())) {
    const auto* value = FindEnumValue(v1::TaskState_descriptor(), state);
    if (value == nullptr) return Wrong("count", "no task state \"", state, "\"");
    counts[EnumText(value)] = job->count().at(state);
  }
  job->mutable_count()->swap(counts);
  return absl::OkStatus();
}

absl::Status ExpandJob(sim::v1::ExpectedJob* job) {
  auto status = ExpandList(job->mutable_on());
  if (status.ok()) status = ExpandList(job->mutable_waits_on());
  if (status.ok()) status = ExpandList(job->mutable_reserved_on());
  if (status.ok()) status = ExpandTasks(job);
  if (status.ok()) status = ExpandCounts(job);
  return status;
}

absl::Status ExpandQueue(sim::v1::ExpectedQueue* queue) {
  for (AmountTexts* amounts :
       {queue->mutable_allocated(), queue->mutable_pending(), queue->mutable_fair_share(),
        queue->mutable_nonpreemptible(), queue->mutable_entitled(), queue->mutable_usage()}) {
    if (auto status = ExpandAmounts(amounts, "queues"); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<Expectation> WithExpandedPatterns(const Expectation& expected) {
  Expectation result = expected;
  absl::Status status;
  for (std::string& decision : *result.mutable_decisions()) {
    if (status.ok()) status = ExpandDecision(&decision);
  }
  for (const std::string& name : NamesIn(result.jobs())) {
    if (status.ok()) status = Under("jobs." + name, ExpandJob(&result.mutable_jobs()->at(name)));
  }
  for (const std::string& name : NamesIn(result.queues())) {
    if (!status.ok()) break;
    status = Under("queues." + name, ExpandQueue(&result.mutable_queues()->at(name)));
  }
  for (const std::string& name : NamesIn(result.nodes())) {
    if (!status.ok()) break;
    status = ExpandAmounts(result.mutable_nodes()->at(name).mutable_free(), "nodes." + name);
  }
  if (!status.ok()) return status;
  return result;
}

// ---- The actual values, in the same form.

template <class List>
auto FindNamed(const List& list, const std::string& name) -> decltype(&list[0]) {
  for (const auto& one : list) {
    if (one.name() == name) return &one;
  }
  return nullptr;
}

void FillReason(const sim::v1::JobResult& job, const sim::v1::ExpectedReason& expected,
                sim::v1::ExpectedReason* actual) {
  if (job.reasons().empty()) return;
  const sim::v1::WaitReason& reason = job.reasons(0);
  actual->set_code(reason.code());
  actual->set_resource(reason.resource());
  actual->set_needed(reason.needed());
  actual->set_free(reason.free());
  actual->set_limit(reason.limit());
  actual->set_queue(reason.queue());
  actual->set_job(reason.job());
  const bool said = absl::StrContains(reason.detail(), expected.detail());
  actual->set_detail(said ? expected.detail() : reason.detail());
  if (reason.has_until()) *actual->mutable_until() = reason.until();
  for (const auto& [action, barred] : reason.barred()) {
    const auto wanted = expected.barred().find(action);
    if (wanted == expected.barred().end()) continue;
    const bool as_wanted = absl::StrContains(barred, wanted->second);
    (*actual->mutable_barred())[action] = as_wanted ? wanted->second : barred;
  }
}

void FillTasks(const sim::v1::ScenarioResult& end, const std::string& job,
               sim::v1::ExpectedJob* actual) {
  for (const sim::v1::TaskResult& task : end.tasks()) {
    if (task.job() != job) continue;
    if (task.state() == v1::TASK_NOMINATED) actual->add_waits_on(task.node());
    const bool on = task.state() >= v1::TASK_BOUND && task.state() <= v1::TASK_RUNNING;
    if (on) actual->add_on(task.node());
    ++(*actual->mutable_count())[EnumText(
        v1::TaskState_descriptor()->FindValueByNumber(task.state()))];
    sim::v1::ExpectedTask& to = (*actual->mutable_tasks())[task.task()];
    to.set_state(task.state());
    to.set_node(task.node());
    *to.mutable_devices() = task.devices();
    to.set_moves_to(task.moves_to());
    to.set_attempt(task.attempt());
  }
}

sim::v1::ExpectedJob ActualJob(const sim::v1::ScenarioResult& end, const std::string& name,
                               const sim::v1::ExpectedJob& expected) {
  sim::v1::ExpectedJob actual;
  const sim::v1::JobResult* job = FindNamed(end.jobs(), name);
  actual.set_gone(job == nullptr);
  if (job == nullptr) return actual;
  actual.set_state(job->state());
  FillReason(*job, expected.reason(), actual.mutable_reason());
  FillTasks(end, name, &actual);
  for (const auto& [state, count] : expected.count()) (*actual.mutable_count())[state] += 0;
  actual.set_retries(job->retries());
  actual.set_starts(job->starts());
  const bool said = absl::StrContains(job->message(), expected.message());
  actual.set_message(said ? expected.message() : job->message());
  actual.set_no_reservation(!job->has_reservation());
  if (job->has_started()) *actual.mutable_started() = job->started();
  if (!job->has_reservation()) return actual;
  *actual.mutable_reserved() = job->reservation().start();
  for (const auto& place : job->reservation().places()) actual.add_reserved_on(place.node());
  return actual;
}

void FillAmounts(const Map<std::string, double>& from, const AmountTexts& expected,
                 AmountTexts* actual) {
  for (const auto& [name, text] : expected) {
    const auto found = from.find(name);
    const double amount = found == from.end() ? 0 : found->second;
    (*actual)[name] = AmountText(name, std::llround(amount * static_cast<double>(UnitOf(name))));
  }
}

sim::v1::ExpectedQueue ActualQueue(const sim::v1::QueueResult& queue,
                                   const sim::v1::ExpectedQueue& expected) {
  sim::v1::ExpectedQueue actual;
  FillAmounts(queue.allocated(), expected.allocated(), actual.mutable_allocated());
  FillAmounts(queue.pending(), expected.pending(), actual.mutable_pending());
  FillAmounts(queue.fair_share(), expected.fair_share(), actual.mutable_fair_share());
  FillAmounts(queue.nonpreemptible(), expected.nonpreemptible(), actual.mutable_nonpreemptible());
  FillAmounts(queue.entitled(), expected.entitled(), actual.mutable_entitled());
  FillAmounts(queue.usage(), expected.usage(), actual.mutable_usage());
  actual.set_running_jobs(queue.running_jobs());
  actual.set_active_jobs(queue.active_jobs());
  actual.set_held_jobs(queue.held_jobs());
  return actual;
}

sim::v1::ExpectedNode ActualNode(const sim::v1::NodeResult& node,
                                 const sim::v1::ExpectedNode& expected) {
  sim::v1::ExpectedNode actual;
  actual.set_state(node.state());
  FillAmounts(node.free(), expected.free(), actual.mutable_free());
  actual.set_tasks(node.tasks());
  actual.set_cordoned(node.cordoned());
  actual.set_draining(node.draining());
  actual.set_refusals(node.refusals());
  for (const auto& [kind, unused] : expected.domains()) {
    const auto found = node.domains().find(kind);
    (*actual.mutable_domains())[kind] = found == node.domains().end() ? "none" : found->second;
  }
  return actual;
}

Expectation Actual(const Expectation& expected, const sim::v1::ScenarioResult& end,
                   const std::vector<std::string>& decisions) {
  Expectation actual;
  for (std::string decision : decisions) {
    (void)ExpandDecision(&decision);
    actual.add_decisions(std::move(decision));
  }
  actual.set_no_decisions(decisions.empty());
  for (const auto& [name, job] : expected.jobs()) {
    (*actual.mutable_jobs())[name] = ActualJob(end, name, job);
  }
  for (const auto& [name, queue] : expected.queues()) {
    const sim::v1::QueueResult* found = FindNamed(end.queues(), name);
    if (found != nullptr) (*actual.mutable_queues())[name] = ActualQueue(*found, queue);
  }
  for (const auto& [name, node] : expected.nodes()) {
    const sim::v1::NodeResult* found = FindNamed(end.nodes(), name);
    if (found != nullptr) (*actual.mutable_nodes())[name] = ActualNode(*found, node);
  }
  return actual;
}

}  // namespace

absl::StatusOr<Comparison> Compare(const Expectation& expected, const sim::v1::ScenarioResult& end,
                                   const std::vector<std::string>& decisions) {
  absl::StatusOr<Expectation> wanted = WithExpandedPatterns(expected);
  if (!wanted.ok()) return wanted.status();
  const Expectation all = Actual(*wanted, end, decisions);
  Comparison comparison;
  DiffFields(*wanted, all, "", &comparison.mismatches);
  CopyNamed(*wanted, all, &comparison.actual);
  return comparison;
}

std::string ExpectationText(const Expectation& expectation, int indent) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  std::string text = margin + "expect:\n";
  const auto list = [&](const char* name, const auto& map) {
    if (map.empty()) return;
    absl::StrAppend(&text, margin, "  ", name, ":\n");
    for (const std::string& key : NamesIn(map)) {
      absl::StrAppend(&text, margin, "    ", key, ": ", FlowText(map.at(key)), "\n");
    }
  };
  if (expectation.decisions_size() > 0) absl::StrAppend(&text, margin, "  decisions:\n");
  for (const std::string& decision : expectation.decisions()) {
    const std::vector<std::string> words = absl::StrSplit(decision, ' ');
    absl::StrAppend(&text, margin, "  - ", absl::StrJoin(CompressPlaces(words), " "), "\n");
  }
  if (expectation.has_no_decisions()) {
    absl::StrAppend(&text, margin,
                    "  noDecisions: ", expectation.no_decisions() ? "true\n" : "false\n");
  }
  list("jobs", expectation.jobs());
  list("queues", expectation.queues());
  list("nodes", expectation.nodes());
  return text;
}

}  // namespace berth
