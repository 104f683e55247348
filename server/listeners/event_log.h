// EventLog: logs durable events. Nodes at level info, jobs and tasks at level debug.
#ifndef BERTH_SERVER_LISTENERS_EVENT_LOG_H_
#define BERTH_SERVER_LISTENERS_EVENT_LOG_H_

#include <memory>
#include <string>
#include <vector>

#include "server/loop/turn.h"

namespace berth {

class EventLog final : public DurableListener {
 public:
  void OnTurnDurable(uint64_t revision, std::shared_ptr<const std::vector<Event>> events,
                     std::shared_ptr<const std::string> turn) override;
};

}  // namespace berth

#endif  // BERTH_SERVER_LISTENERS_EVENT_LOG_H_
