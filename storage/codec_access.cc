// Access rules: the record, and the change in an event.
#include "core/base/fields.h"
#include "storage/codec.h"
#include "storage/codec_common.h"
#include "storage/keys.h"

namespace berth {
namespace codec {
namespace {

static_assert(static_cast<int>(Subject::Kind::kGroup) == pb::SUBJECT_GROUP);
static_assert(static_cast<int>(Subject::Kind::kEveryone) == pb::SUBJECT_EVERYONE);
static_assert(static_cast<int>(Revocation::Kind::kNode) == pb::REVOKED_NODE);
static_assert(static_cast<int>(Revocation::Kind::kSerial) == pb::REVOKED_SERIAL);

// Whoever adds a field encodes and decodes it below, and then changes the number.
static_assert(kFields<Subject> == 2);
static_assert(kFields<Grant> == 3);
static_assert(kFields<CustomRole> == 2);
static_assert(kFields<Revocation> == 2);
static_assert(kFields<AccessChange> == 8);
static_assert(kFields<JoinToken> == 8);
static_assert(kFields<JoinRedemption> == 3);
static_assert(kFields<JoinTokenChange> == 3);
static_assert(kFields<Actor> == 8);
static_assert(static_cast<int>(Door::kIdentity) == pb::ACTOR_IDENTITY);
static_assert(static_cast<int>(Door::kCertificate) == pb::ACTOR_CERTIFICATE);
static_assert(static_cast<int>(Door::kWithoutTls) == pb::ACTOR_WITHOUT_TLS);
static_assert(static_cast<int>(Door::kServer) == pb::ACTOR_SERVER);

template <class Messages>
void SetGrants(const std::vector<Grant>& grants, Messages* out) {
  for (const Grant& grant : grants) {
    pb::AccessGrant* m = out->Add();
    m->set_subject_kind(static_cast<pb::SubjectKind>(grant.subject.kind));
    m->set_subject(grant.subject.name);
    m->set_queue(grant.queue.value);
    m->set_role(grant.role);
  }
}

template <class Messages>
std::vector<Grant> GetGrants(const Messages& messages, Reader& reader) {
  std::vector<Grant> grants;
  for (const pb::AccessGrant& m : messages) {
    grants.push_back({.subject = {.kind = reader.Enum<Subject::Kind>(
                                      m.subject_kind(), pb::SubjectKind_IsValid(m.subject_kind()),
                                      "kind of a grant's subject"),
                                  .name = m.subject()},
                      .queue = QueueId{m.queue()},
                      .role = m.role()});
  }
  return grants;
}

template <class Messages>
void SetRevocations(const std::vector<Revocation>& revocations, Messages* out) {
  for (const Revocation& revocation : revocations) {
    pb::Revocation* m = out->Add();
    m->set_kind(static_cast<pb::RevocationKind>(revocation.kind));
    m->set_name(revocation.name);
  }
}

template <class Messages>
std::vector<Revocation> GetRevocations(const Messages& messages, Reader& reader) {
  std::vector<Revocation> revocations;
  for (const pb::Revocation& m : messages) {
    revocations.push_back(
        {.kind = reader.Enum<Revocation::Kind>(m.kind(), pb::RevocationKind_IsValid(m.kind()),
                                               "kind of revocation"),
         .name = m.name()});
  }
  return revocations;
}

CustomRole GetRole(const pb::AccessRole& message, Reader& reader) {
  CustomRole role{.name = message.name(), .verbs = {}};
  for (const std::string& name : message.verbs()) {
    const std::optional<Verb> verb = FindVerb(name);
    // A role with fewer verbs than were granted is not a role that anybody asked for.
    if (verb.has_value()) {
      role.verbs.push_back(*verb);
    } else {
      reader.Refuse(absl::StrCat("unknown verb ", name));
    }
  }
  return role;
}

void SetJoinTokens(const JoinTokenChange& change, pb::AccessChange* out) {
  for (const std::string& id : change.drop) out->add_drop_join_tokens(id);
  for (const JoinToken& token : change.create) {
    pb::JoinToken* m = out->add_create_join_tokens();
    m->set_id(token.id);
    m->set_secret_hash(token.secret_hash);
    m->set_nodes(token.nodes);
    m->set_uses_left(token.uses_left);
    SetTime(token.expires, m->mutable_expires());
    m->set_created_by(token.created_by);
    m->set_last_node(token.last_node);
    m->set_last_request(token.last_request);
  }
  for (const JoinRedemption& use : change.redeem) {
    pb::JoinRedemption* m = out->add_redeem_join_tokens();
    m->set_id(use.id);
    m->set_node(use.node);
    m->set_request(use.request);
  }
}

JoinTokenChange GetJoinTokens(const pb::AccessChange& message, Reader& reader) {
  JoinTokenChange change{
      .drop = {message.drop_join_tokens().begin(), message.drop_join_tokens().end()},
      .create = {},
      .redeem = {}};
  for (const pb::JoinToken& m : message.create_join_tokens()) {
    change.create.push_back({.id = m.id(),
                             .secret_hash = m.secret_hash(),
                             .nodes = m.nodes(),
                             .uses_left = m.uses_left(),
                             .expires = reader.GetTime(m.has_expires(), m.expires(),
                                                       absl::InfinitePast(), "end of a token"),
                             .created_by = m.created_by(),
                             .last_node = m.last_node(),
                             .last_request = m.last_request()});
  }
  for (const pb::JoinRedemption& m : message.redeem_join_tokens()) {
    change.redeem.push_back({.id = m.id(), .node = m.node(), .request = m.request()});
  }
  return change;
}

}  // namespace

void SetAccessChange(const AccessChange& change, pb::AccessChange* out) {
  out->set_enforce(change.enforce);
  SetGrants(change.revoke, out->mutable_revoke());
  for (const std::string& role : change.delete_roles) out->add_delete_roles(role);
  for (const CustomRole& role : change.set_roles) {
    pb::AccessRole* m = out->add_set_roles();
    m->set_name(role.name);
    for (const Verb verb : role.verbs) m->add_verbs(std::string(NameOf(verb)));
  }
  SetGrants(change.grant, out->mutable_grant());
  SetRevocations(change.readmit, out->mutable_readmit());
  SetRevocations(change.refuse, out->mutable_refuse());
  SetJoinTokens(change.join_tokens, out);
}

AccessChange GetAccessChange(const pb::AccessChange& message, Reader& reader) {
  AccessChange change{
      .enforce = message.enforce(),
      .revoke = GetGrants(message.revoke(), reader),
      .delete_roles = {message.delete_roles().begin(), message.delete_roles().end()},
      .set_roles = {},
      .grant = GetGrants(message.grant(), reader),
      .readmit = GetRevocations(message.readmit(), reader),
      .refuse = GetRevocations(message.refuse(), reader),
      .join_tokens = GetJoinTokens(message, reader)};
  for (const pb::AccessRole& role : message.set_roles()) {
    change.set_roles.push_back(GetRole(role, reader));
  }
  return change;
}

void SetActor(const Actor& actor, pb::Actor* out) {
  out->set_name(actor.name);
  out->set_node(actor.kind == Principal::Kind::kNode);
  out->set_door(static_cast<pb::ActorDoor>(actor.door));
  out->set_serial(actor.serial);
  out->set_address(actor.address);
  out->set_request_id(actor.request_id);
  out->set_method(actor.method);
  out->set_target(actor.target);
}

Actor GetActor(const pb::Actor& message, Reader& reader) {
  return {.kind = message.node() ? Principal::Kind::kNode : Principal::Kind::kUser,
          .name = message.name(),
          .door = reader.Enum<Door>(message.door(), pb::ActorDoor_IsValid(message.door()),
                                    "door of an actor"),
          .serial = message.serial(),
          .address = message.address(),
          .request_id = message.request_id(),
          .method = message.method(),
          .target = message.target()};
}

}  // namespace codec

std::string EncodeAccessRecord(const AccessChange& rules) {
  codec::pb::AccessChange message;
  codec::SetAccessChange(rules, &message);
  return message.SerializeAsString();
}

absl::StatusOr<AccessChange> DecodeAccessRecord(absl::string_view value, std::string* unknown) {
  codec::pb::AccessChange message;
  absl::Status status = codec::ParseMessage(value, &message, unknown);
  if (!status.ok()) return NameRecord(status, RecordKind::kMeta, kAccessKey);
  codec::Reader reader;
  AccessChange rules = codec::GetAccessChange(message, reader);
  status = codec::Verdict(reader, RecordKind::kMeta, kAccessKey);
  if (!status.ok()) return status;
  return rules;
}

}  // namespace berth
