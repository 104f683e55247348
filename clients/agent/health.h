// Tracks node health: results of checks in, conditions and unfit devices out.
//
// A check's condition starts after fail_after bad results in a row and ends after recover_after
// good ones, so that a value that oscillates around its limit changes nothing. Example with 2 and
// 3: bad good bad bad -> starts; good good bad good good good -> ends. Device checks are counted
// separately for each device; the node has one condition for all devices that fail. No thread,
// clock or IO.
#ifndef BERTH_CLIENTS_AGENT_HEALTH_H_
#define BERTH_CLIENTS_AGENT_HEALTH_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "berth/config/v1/config.pb.h"
#include "berth/v1/agent.pb.h"

namespace berth {

struct CheckResult {
  std::string check;  // "disk-space"
  bool good = true;
  std::string message = {};  // the reason
  std::string device = {};   // UUID; empty: the node
  bool certain = false;      // bad takes effect at once, without repetition
};

class HealthBook {
 public:
  using Effect = v1::NodeCondition::Effect;

  HealthBook(int fail_after, int recover_after)
      : fail_after_(fail_after), recover_after_(recover_after) {}

  // Returns whether the conditions or the unfit devices changed. A new message alone does not
  // count: it would be reported every time. `unfit`: the device is not schedulable while the
  // condition holds.
  bool Note(const CheckResult& result, Effect effect, bool unfit = false);
  // Holds until this process ends: for events that cannot be checked again.
  bool Raise(const std::string& check, Effect effect, const std::string& message);
  // From now on exactly these devices fail this check, with these messages: for results that need
  // no counting. Returns whether anything changed.
  bool Set(const std::string& check, Effect effect,
           const std::map<std::string, std::string>& failing);
  v1::NodeConditions Conditions() const;  // sorted by name
  std::set<std::string> UnfitDevices() const;
  // The message of a check for which the device is unfit; empty: it is not.
  std::string WhyUnfit(const std::string& device) const;

 private:
  struct Check {
    int bad = 0;   // in a row
    int good = 0;  // in a row
    bool holds = false;
    bool stays = false;
    bool unfit = false;
    Effect effect = v1::NodeCondition::NOTE;
    std::string message;
  };

  const int fail_after_;
  const int recover_after_;
  std::map<std::pair<std::string, std::string>, Check> checks_;  // by name and device
};

// The effect of a configured check; EFFECT_UNSPECIFIED for one that is ignored.
v1::NodeCondition::Effect EffectOf(config::v1::Health::Effect configured,
                                   v1::NodeCondition::Effect otherwise);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_HEALTH_H_
