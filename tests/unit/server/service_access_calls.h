// A call of every method, for the matrix of access.
#ifndef BERTH_TESTS_UNIT_SERVER_SERVICE_ACCESS_CALLS_H_
#define BERTH_TESTS_UNIT_SERVER_SERVICE_ACCESS_CALLS_H_

#include <string>

#include "absl/status/status.h"
#include "server/access/rpcs.h"
#include "tests/unit/server/service_access_world.h"

namespace berth::testing {

// What a call is about.
struct Place {
  const char* name;
  const char* queue;
  const char* parent;
  const char* job;
  const char* kept;  // a job that nobody cancels
};
constexpr Place kInside = {"inside", "team-a", "team", "train", "kept"};
constexpr Place kOutside = {"outside", "other", "", "theirs", "kept-theirs"};

// The method's answer: streams are read to their end, or until they show that they are admitted.
absl::Status Try(Door& door, Rpc rpc, const Place& at);
// As an agent of that node.
absl::Status TryConnect(Door& door, const std::string& node);

}  // namespace berth::testing

#endif  // BERTH_TESTS_UNIT_SERVER_SERVICE_ACCESS_CALLS_H_
