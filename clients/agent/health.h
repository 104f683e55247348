// What is wrong with this node: results of checks in, conditions and unfit devices out.
//
// A check's condition holds after fail_after bad results in a row and is over after recover_after
// good ones, so that a value that swings around its limit changes nothing. Example with 2 and 3:
// bad good bad bad -> holds; good good bad good good good -> over. Checks of devices count for each
// device by itself; the node has one condition for all that fail. No thread, clock or IO.
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
  std::string message = {};  // why not
  std::string device = {};   // UUID; empty: of the node
  bool certain = false;      // bad is bad: it need not be seen again to hold
};

class HealthBook {
 public:
  using Effect = v1::NodeCondition::Effect;

  HealthBook(int fail_after, int recover_after)
      : fail_after_(fail_after), recover_after_(recover_after) {}

  // Whether the conditions or the unfit devices are others now. A new message alone is none: it
  // would be told each time. `unfit`: the device is not to be given out while it holds.
  bool Note(const CheckResult& result, Effect effect, bool unfit = false);
  // Holds until this process ends: for what cannot be looked at again.
  bool Raise(const std::string& check, Effect effect, const std::string& message);
  // Exactly these devices fail this check from now on, with these messages: for what is known
  // without counting. Whether that is news.
  bool Set(const std::string& check, Effect effect,
           const std::map<std::string, std::string>& failing);
  v1::NodeConditions Conditions() const;  // by name
  std::set<std::string> UnfitDevices() const;

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

// What a failed check of the configuration does; EFFECT_UNSPECIFIED for one that is ignored.
v1::NodeCondition::Effect EffectOf(config::v1::Health::Effect configured,
                                   v1::NodeCondition::Effect otherwise);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_HEALTH_H_
