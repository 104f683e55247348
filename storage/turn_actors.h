// Reads the actors of an encoded turn, and what their events are about, without decoding the
// events: a turn may have thousands of submitted jobs.
#ifndef BERTH_STORAGE_TURN_ACTORS_H_
#define BERTH_STORAGE_TURN_ACTORS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/access/actor.h"
#include "core/model/ids.h"

namespace berth {

// Views into the turn.
struct TurnActors {
  Time time = absl::InfinitePast();
  std::vector<ActorRange> actors;
  std::vector<absl::string_view> events;  // encoded store.v1.LogEvents; empty without actors
};
// DATA_LOSS if the turn does not parse.
absl::StatusOr<TurnActors> ReadTurnActors(absl::string_view turn);

struct EventSubject {
  int kind = 0;                                    // number of the field of store.v1.LogEvent.body
  absl::string_view job, node, queue, hyper_node;  // names; empty if the event has none
  absl::string_view body;                          // encoded
  bool queue_open = false;
};
absl::StatusOr<EventSubject> ReadEventSubject(absl::string_view event);

}  // namespace berth

#endif  // BERTH_STORAGE_TURN_ACTORS_H_
