// A world where waiting takes no time: sleeps move the clock and are recorded.
#ifndef BERTH_TESTS_UNIT_CLIENT_FAKE_WORLD_H_
#define BERTH_TESTS_UNIT_CLIENT_FAKE_WORLD_H_

#include <vector>

#include "clients/cpp/retry.h"

namespace berth {

class FakeWorld : public Clock, public Sleeper {
 public:
  absl::Time Now() override { return absl::FromUnixSeconds(1'795'000'000) + passed_; }
  absl::Duration Steady() override { return passed_; }
  void Sleep(absl::Duration duration) override {
    passed_ += duration;
    sleeps.push_back(duration);
  }
  ClientEnvironment environment() { return {this, this, &random_}; }

  std::vector<absl::Duration> sleeps;

 private:
  absl::Duration passed_ = absl::Hours(1);
  Random random_{1};
};

}  // namespace berth

#endif  // BERTH_TESTS_UNIT_CLIENT_FAKE_WORLD_H_
