#include "server/convert/access.h"

namespace berth {
namespace {

void RenderSubject(const Subject& subject, v1::AccessSubject* out) {
  switch (subject.kind) {
    case Subject::Kind::kUser:
      return out->set_user(subject.name);
    case Subject::Kind::kGroup:
      return out->set_group(subject.name);
    case Subject::Kind::kEveryone:
      return out->set_everyone(true);
  }
}

}  // namespace

const Queue* FindAccessQueue(const ClusterState& state, const std::string& name) {
  return name.empty() ? &state.queues().At(kRootQueue) : state.FindQueue(name);
}

void RenderGrant(const ClusterState& state, const Grant& grant, v1::AccessGrant* out) {
  RenderSubject(grant.subject, out->mutable_subject());
  out->set_queue(state.queues().At(grant.queue).spec.name);
  out->set_role(grant.role);
}

void RenderRole(absl::string_view name, VerbSet verbs, bool built_in, v1::AccessRole* out) {
  out->set_name(std::string(name));
  verbs.ForEach([&](Verb verb) { out->add_verbs(std::string(NameOf(verb))); });
  out->set_built_in(built_in);
}

void RenderRevocation(const Revocation& revocation, v1::AccessRevocation* out) {
  switch (revocation.kind) {
    case Revocation::Kind::kUser:
      return out->set_user(revocation.name);
    case Revocation::Kind::kNode:
      return out->set_node(revocation.name);
    case Revocation::Kind::kSerial:
      return out->set_serial(revocation.name);
  }
}

}  // namespace berth
