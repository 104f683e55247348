#include "clients/agent/health.h"

#include "support/utf8.h"

namespace berth {
namespace {

constexpr size_t kMaxMessageBytes = 256;

}  // namespace

bool HealthBook::Note(const CheckResult& result, Effect effect) {
  Check& check = checks_[result.check];
  if (check.stays) return false;
  check.bad = result.good ? 0 : check.bad + 1;
  check.good = result.good ? check.good + 1 : 0;
  const bool before = check.holds;
  if (check.bad >= fail_after_) check.holds = true;
  if (check.good >= recover_after_) check.holds = false;
  if (check.holds && !before) {
    check.effect = effect;
    check.message = MendedUtf8(result.message, kMaxMessageBytes);
  }
  return check.holds != before;
}

bool HealthBook::Raise(const std::string& name, Effect effect, const std::string& message) {
  Check& check = checks_[name];
  if (check.stays) return false;
  check.holds = check.stays = true;
  check.effect = effect;
  check.message = MendedUtf8(message, kMaxMessageBytes);
  return true;
}

v1::NodeConditions HealthBook::Conditions() const {
  v1::NodeConditions conditions;
  for (const auto& [name, check] : checks_) {
    if (!check.holds) continue;
    v1::NodeCondition& condition = *conditions.add_conditions();
    condition.set_name(name);
    condition.set_effect(check.effect);
    condition.set_message(check.message);
  }
  return conditions;
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
    default:
      return otherwise;
  }
}

}  // namespace berth
