#include "core/engine/policies.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"
#include "core/policies/registry.h"

namespace berth {

bool Action::MakeRoomFor(Cycle&, const Job&, const JobNeeds&) const { return false; }
std::optional<JobRank> JobOrder::PrepareRank(const Policies&, const ClusterState&) const {
  return std::nullopt;
}
Time JobOrder::RanksAgain(const Policies&, const Job&, Time) const {
  return absl::InfiniteFuture();
}
JobStanding JobOrder::PrepareStanding(const Policies&) const { return nullptr; }
namespace {

// Makes the named policies of one plug point; reports wrong names in `errors`.
template <class Point>
std::vector<std::unique_ptr<Point>> MakeAll(const char* what, const std::vector<std::string>& names,
                                            std::vector<std::string>* errors) {
  std::vector<std::unique_ptr<Point>> policies;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    std::unique_ptr<Point> policy = MakePolicy<Point>(name);
    if (policy == nullptr) {
      errors->push_back(absl::StrCat("unknown ", what, " \"", name, "\" (known: ",
                                     absl::StrJoin(PolicyNames<Point>(), ", "), ")"));
    }
    if (!seen.insert(name).second)
      errors->push_back(absl::StrCat(what, " \"", name, "\" is listed twice"));
    policies.push_back(std::move(policy));
  }
  return policies;
}

void FindInert(const std::vector<std::unique_ptr<Action>>& actions,
               std::vector<std::string>* errors) {
  for (const auto& action : actions) {
    if (action == nullptr) continue;
    if (action->role() == ActionRole::kServes) return;
    if (action->role() != ActionRole::kMakesRoom) continue;
    errors->push_back(absl::StrCat("action \"", action->name(),
                                   "\" would never do anything: it makes room for jobs for which "
                                   "an earlier action found none; put \"allocate\" or "
                                   "\"backfill\" before it"));
  }
}

}  // namespace

PolicyConfig::PolicyConfig() = default;
PolicyConfig::PolicyConfig(const PolicyConfig&) = default;
PolicyConfig::PolicyConfig(PolicyConfig&&) noexcept = default;
PolicyConfig& PolicyConfig::operator=(const PolicyConfig&) = default;
PolicyConfig& PolicyConfig::operator=(PolicyConfig&&) noexcept = default;
PolicyConfig::~PolicyConfig() = default;

Policies::Policies() = default;
Policies::Policies(Policies&&) noexcept = default;
Policies& Policies::operator=(Policies&&) noexcept = default;
Policies::~Policies() = default;

bool Policies::HasAction(absl::string_view name) const {
  return std::any_of(actions_.begin(), actions_.end(),
                     [&](const auto& action) { return action->name() == name; });
}

Policies Policies::Default() {
  absl::StatusOr<Policies> policies = Create(PolicyConfig{});
  BERTH_CHECK(policies.ok());
  return *std::move(policies);
}

absl::StatusOr<Policies> Policies::Create(const PolicyConfig& config) {
  std::vector<std::string> errors;
  Policies policies;
  policies.actions_ = MakeAll<Action>("action", config.actions, &errors);
  FindInert(policies.actions_, &errors);
  policies.filters_ = MakeAll<NodeFilter>("filter", config.filters, &errors);
  policies.scores_ = MakeAll<NodeScore>("score", config.scores, &errors);
  policies.job_orders_ = MakeAll<JobOrder>("job order", config.job_orders, &errors);
  policies.config_ = config;
  if (!errors.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors, "; "));
  return policies;
}

}  // namespace berth
