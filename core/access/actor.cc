#include "core/access/actor.h"

#include <utility>

namespace berth {
namespace {

// Not within a character of UTF-8.
void CutText(size_t most, std::string& text) {
  if (text.size() <= most) return;
  while (most > 0 && (static_cast<uint8_t>(text[most]) & 0xc0) == 0x80) --most;
  text.resize(most);
}

}  // namespace

Actor Bounded(Actor actor) {
  CutText(Actor::kMaxName, actor.name);
  for (std::string* text :
       {&actor.serial, &actor.address, &actor.request_id, &actor.method, &actor.target}) {
    CutText(Actor::kMaxText, *text);
  }
  return actor;
}

}  // namespace berth
