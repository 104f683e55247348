#include "core/access/verbs.h"

#include <array>

namespace berth {
namespace {

constexpr std::array<absl::string_view, kVerbs> kNames = {
    "cluster.read", "cluster.operate", "cluster.maintain", "node.manage", "node.admit",
    "audit.read",   "queue.read",      "queue.manage",     "job.list",    "job.read",
    "job.logs",     "job.submit",      "job.submitFor",    "job.change",  "job.requeue",
    "job.exec",     "access.grant"};
static_assert(static_cast<size_t>(Verb::kGrant) + 1 == kVerbs);

}  // namespace

absl::string_view NameOf(Verb verb) { return kNames[static_cast<size_t>(verb)]; }

std::optional<Verb> FindVerb(absl::string_view name) {
  for (size_t i = 0; i < kVerbs; ++i) {
    if (kNames[i] == name) return static_cast<Verb>(i);
  }
  return std::nullopt;
}

}  // namespace berth
