// Built without npm: there is no page.
#include "clients/web/assets.h"

namespace berth::web {

absl::Span<const Asset> Assets() { return {}; }

}  // namespace berth::web
