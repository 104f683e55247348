// What is wrong with this node: results of checks in, conditions out.
//
// A check's condition holds after fail_after bad results in a row and is over after recover_after
// good ones, so that a value that swings around its limit changes nothing. Example with 2 and 3:
// bad good bad bad -> holds; good good bad good good good -> over. No thread, clock or IO.
#ifndef BERTH_CLIENTS_AGENT_HEALTH_H_
#define BERTH_CLIENTS_AGENT_HEALTH_H_

#include <map>
#include <string>

#include "berth/config/v1/config.pb.h"
#include "berth/v1/agent.pb.h"

namespace berth {

struct CheckResult {
  std::string check;  // "disk-space"
  bool good = true;
  std::string message;  // why not
};

class HealthBook {
 public:
  using Effect = v1::NodeCondition::Effect;

  HealthBook(int fail_after, int recover_after)
      : fail_after_(fail_after), recover_after_(recover_after) {}

  // Whether the conditions are others now. A new message alone is none: it would be told each time.
  bool Note(const CheckResult& result, Effect effect);
  // Holds until this process ends: for what cannot be looked at again.
  bool Raise(const std::string& check, Effect effect, const std::string& message);
  v1::NodeConditions Conditions() const;  // by name

 private:
  struct Check {
    int bad = 0;   // in a row
    int good = 0;  // in a row
    bool holds = false;
    bool stays = false;
    Effect effect = v1::NodeCondition::NOTE;
    std::string message;
  };

  const int fail_after_;
  const int recover_after_;
  std::map<std::string, Check> checks_;
};

// What a failed check of the configuration does; EFFECT_UNSPECIFIED for one that is ignored.
v1::NodeCondition::Effect EffectOf(config::v1::Health::Effect configured,
                                   v1::NodeCondition::Effect otherwise);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_HEALTH_H_
