#include "clients/agent/held_exits.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace berth {
namespace {

void Blame(const std::string& why, TaskEvent* event) {
  event->cause = v1::TaskReport::DEVICE_FAULT;
  event->message = event->message.empty() ? why : absl::StrCat(event->message, "; ", why);
}

}  // namespace

bool FailedByItself(const TaskEvent& event) {
  return event.kind == TaskEvent::Kind::kExited &&
         event.cause == v1::TaskReport::CAUSE_UNSPECIFIED &&
         (event.exit_code != 0 || event.exit_signal != 0);
}

void HeldExits::Hold(TaskEvent event, std::vector<std::string> devices, uint64_t round,
                     absl::Duration now) {
  held_.push_back({std::move(event), std::move(devices), round, now + kLongestLook});
}

std::vector<TaskEvent> HeldExits::Take(uint64_t round, absl::Duration now, const WhyBad& why_bad) {
  std::vector<TaskEvent> taken;
  std::deque<Held> left;
  for (Held& held : held_) {
    if (held.round > round && held.until > now) {
      left.push_back(std::move(held));
      continue;
    }
    for (const std::string& uuid : held.devices) {
      const std::string why = why_bad(uuid);
      if (why.empty()) continue;
      Blame(why, &held.event);
      break;
    }
    taken.push_back(std::move(held.event));
  }
  held_ = std::move(left);
  return taken;
}

absl::Duration HeldExits::NextWake() const {
  return held_.empty() ? absl::InfiniteDuration() : held_.front().until;
}

}  // namespace berth
