#include "clients/agent/health.h"

#include "absl/strings/str_cat.h"
#include "support/utf8.h"

namespace berth {
namespace {

constexpr size_t kMaxHealthMessageBytes = 256;

}  // namespace

bool HealthBook::Note(const CheckResult& result, Effect effect, bool unfit) {
  Check& check = checks_[{result.check, result.device}];
  if (check.stays) return false;
  check.bad = result.good ? 0 : check.bad + 1;
  check.good = result.good ? check.good + 1 : 0;
  const bool before = check.holds;
  if (check.bad >= fail_after_ || (!result.good && result.certain)) check.holds = true;
  if (check.good >= recover_after_) check.holds = false;
  if (check.holds && !before) {
    check.effect = effect;
    check.unfit = unfit;
    check.message = SanitizedUtf8(result.message, kMaxHealthMessageBytes);
  }
  return check.holds != before;
}

bool HealthBook::Raise(const std::string& name, Effect effect, const std::string& message) {
  Check& check = checks_[{name, ""}];
  if (check.stays) return false;
  check.holds = check.stays = true;
  check.effect = effect;
  check.message = SanitizedUtf8(message, kMaxHealthMessageBytes);
  return true;
}

bool HealthBook::Set(const std::string& name, Effect effect,
                     const std::map<std::string, std::string>& failing) {
  bool changed = std::erase_if(checks_, [&](const auto& entry) {
                   return entry.first.first == name && !failing.contains(entry.first.second);
                 }) > 0;
  for (const auto& [device, message] : failing) {
    const auto [at, added] = checks_.try_emplace({name, device});
    changed |= added;
    at->second.holds = true;
    at->second.effect = effect;
    at->second.message = SanitizedUtf8(message, kMaxHealthMessageBytes);
  }
  return changed;
}

// All devices that fail one check are one condition, with the message of the first. They are
// adjacent, as entries are sorted by name first.
v1::NodeConditions HealthBook::Conditions() const {
  v1::NodeConditions conditions;
  std::map<std::string, int> failing;
  for (const auto& [key, check] : checks_) {
    if (!check.holds || check.effect == v1::NodeCondition::EFFECT_UNSPECIFIED) continue;
    if (failing[key.first]++ > 0) continue;
    v1::NodeCondition& condition = *conditions.add_conditions();
    condition.set_name(key.first);
    condition.set_effect(check.effect);
    condition.set_message(check.message);
  }
  for (v1::NodeCondition& condition : *conditions.mutable_conditions()) {
    const int others = failing.at(condition.name()) - 1;
    if (others == 0) continue;
    const std::string more = absl::StrCat("; and ", others, " more");
    const std::string text =
        SanitizedUtf8(condition.message(), kMaxHealthMessageBytes - more.size());
    condition.set_message(absl::StrCat(text, more));
  }
  return conditions;
}

std::set<std::string> HealthBook::UnfitDevices() const {
  std::set<std::string> devices;
  for (const auto& [key, check] : checks_) {
    if (check.holds && check.unfit) devices.insert(key.second);
  }
  return devices;
}

std::string HealthBook::WhyUnfit(const std::string& device) const {
  for (const auto& [key, check] : checks_) {
    if (key.second != device || !check.holds || !check.unfit) continue;
    return check.message.empty() ? key.first : check.message;
  }
  return "";
}

v1::NodeCondition::Effect EffectOf(config::v1::Health::Effect configured,
                                   v1::NodeCondition::Effect otherwise) {
  switch (configured) {
    case config::v1::Health::NOTE:
      return v1::NodeCondition::NOTE;
    case config::v1::Health::CORDON:
      return v1::NodeCondition::CORDON;
    case config::v1::Health::DRAIN:
      return v1::NodeCondition::DRAIN;
    case config::v1::Health::IGNORE:
      return v1::NodeCondition::EFFECT_UNSPECIFIED;
    case config::v1::Health::DEVICE:
    case config::v1::Health::TAINT:
      return v1::NodeCondition::NOTE;
    default:
      return otherwise;
  }
}

}  // namespace berth
