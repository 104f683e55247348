// Who caused a change: for the log and the audit. Facts about the past, which give no rights.
#ifndef BERTH_CORE_ACCESS_ACTOR_H_
#define BERTH_CORE_ACCESS_ACTOR_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/access/access.h"

namespace berth {

// By which kind of proof the server knows an actor.
enum class Door : uint8_t {
  kUnknown,      // the server found no name: a certificate that is nobody's
  kIdentity,     // a certificate with an identity of Berth's form
  kCertificate,  // another certificate, by the configuration
  kWithoutTls,   // a connection without TLS, on loopback
  kServer,       // the server itself, or a signal to it
};

struct Actor {
  Principal::Kind kind = Principal::Kind::kUser;
  std::string name;  // "" = nobody
  Door door = Door::kUnknown;
  std::string serial;      // of the certificate: hexadecimal digits
  std::string address;     // of the peer, with the port
  std::string request_id;  // of the client
  std::string method;      // "JobService.CancelJob"
  std::string target;      // "job/train"; "" = the cluster, or what the events name
  bool operator==(const Actor&) const = default;

  // Longer texts are cut: they come from outside.
  static constexpr size_t kMaxText = 128;
  static constexpr size_t kMaxName = AccessRules::kMaxName;
};

// The actor with texts of at most these sizes.
Actor Bounded(Actor actor);

// The events of a turn that an actor caused: from `first` to before `end`, counted from 0. None, if
// they are equal: the command changed records that no event changes.
struct ActorRange {
  Actor actor;
  uint32_t first = 0, end = 0;
  bool operator==(const ActorRange&) const = default;
};

}  // namespace berth

#endif  // BERTH_CORE_ACCESS_ACTOR_H_
