// Any change of the access rules, for RandomValues.
#ifndef BERTH_TESTS_UNIT_STORAGE_RANDOM_ACCESS_H_
#define BERTH_TESTS_UNIT_STORAGE_RANDOM_ACCESS_H_

#include "core/access/access.h"

namespace berth {

template <class Values>
Grant RandomGrant(Values& v) {
  return {.subject = {.kind = v.Any(Subject::Kind::kEveryone), .name = v.Text()},
          .queue = QueueId{v.Uint32()},
          .role = v.Text()};
}

template <class Values>
Revocation RandomRevocation(Values& v) {
  return {.kind = v.Any(Revocation::Kind::kSerial), .name = v.Text()};
}

template <class Values>
JoinToken RandomJoinToken(Values& v) {
  return {.id = v.Text(),
          .secret_hash = v.Text(),
          .nodes = v.Text(),
          .uses_left = v.Uint32(),
          .expires = v.AnyTime(),
          .created_by = v.Text(),
          .last_node = v.Text(),
          .last_request = v.Text()};
}

template <class Values>
AccessChange RandomAccessChange(Values& v) {
  const auto role = [&v] {
    return CustomRole{.name = v.Text(), .verbs = v.List([&v] { return v.Any(Verb::kGrant); })};
  };
  const auto redemption = [&v] { return JoinRedemption{v.Text(), v.Text(), v.Text()}; };
  return {.enforce = v.Coin(),
          .revoke = v.List([&v] { return RandomGrant(v); }),
          .delete_roles = v.Texts(),
          .set_roles = v.List(role),
          .grant = v.List([&v] { return RandomGrant(v); }),
          .readmit = v.List([&v] { return RandomRevocation(v); }),
          .refuse = v.List([&v] { return RandomRevocation(v); }),
          .join_tokens = {.drop = v.Texts(),
                          .create = v.List([&v] { return RandomJoinToken(v); }),
                          .redeem = v.List(redemption)}};
}

}  // namespace berth

#endif  // BERTH_TESTS_UNIT_STORAGE_RANDOM_ACCESS_H_
