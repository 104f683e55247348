#include "clients/cpp/server_choice.h"

namespace berth {

void ServerChoice::Stay() {
  first_round_ = true;
  failed_.assign(size(), false);
  left_out_.assign(size(), 0);
}

bool ServerChoice::Leave(bool answered, std::optional<size_t> leader) {
  failed_[current_] = true;
  left_out_[current_] = answered ? 0 : kTimesLeftOut;
  if (leader.has_value() && *leader < size() && !failed_[*leader]) {
    current_ = *leader;
    return true;
  }
  for (size_t step = 1; first_round_ && step < size(); ++step) {
    const size_t server = (current_ + step) % size();
    if (failed_[server]) continue;
    current_ = server;
    return true;
  }
  first_round_ = false;
  failed_.assign(size(), false);
  current_ = Next();
  return false;
}

// In order after the current one, which comes last.
size_t ServerChoice::Next() {
  for (size_t step = 1; step <= size(); ++step) {
    const size_t server = (current_ + step) % size();
    if (left_out_[server] == 0) return server;
    --left_out_[server];
  }
  return (current_ + 1) % size();
}

}  // namespace berth
