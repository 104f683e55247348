// cluster members, handover, etcd-repair: the servers of a cluster with high availability.
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/command.h"
#include "clients/cli/human.h"

namespace berth {
namespace {

using ClusterStub = v1::ClusterService::StubInterface;

Word StateOf(const v1::ClusterMember& member) {
  if (!member.alive()) return {"not running", Color::kRed};
  if (member.leads()) return {"leader", Color::kGreen};
  if (member.not_eligible().empty()) return {"standby"};
  return {absl::StrCat("cannot take over: ", member.not_eligible()), Color::kYellow};
}

ExitCode ListMembers(Session& session) {
  const absl::StatusOr<v1::ListMembersResponse> response =
      session.Call(&ClusterStub::ListMembers, v1::ListMembersRequest());
  if (!response.ok()) return session.Finish(response.status());
  if (PrintMessage(session, *response)) return ExitCode::kOk;
  if (response->members().empty()) {
    session.err() << "this cluster has one server, without high availability\n";
    return ExitCode::kOk;
  }
  Table table({{"NAME"},
               {"ADDRESS"},
               {"VERSION"},
               {"STATE"},
               {"REVISION", Column::kRight},
               {"ON DISK", Column::kRight}});
  for (const v1::ClusterMember& member : response->members()) {
    table.AddRow({{member.name()},
                  {member.address()},
                  {member.version()},
                  StateOf(member),
                  {absl::StrCat(member.applied_revision())},
                  {absl::StrCat(member.synced_revision())}});
  }
  session.out() << table.Render(session.table_style());
  if (!response->etcd_problem().empty()) {
    session.err() << "etcd: " << response->etcd_problem() << "\n";
  }
  return ExitCode::kOk;
}

ExitCode HandOver(Session& session, const std::string& to) {
  v1::HandOverRequest request;
  request.set_to(to);
  const absl::StatusOr<v1::HandOverResponse> response =
      session.Call(&ClusterStub::HandOver, request);
  if (!response.ok()) return session.Finish(response.status());
  if (PrintMessage(session, *response)) return ExitCode::kOk;
  session.out() << "term " << response->term() << " has ended; "
                << (to.empty() ? "another server" : to) << " takes over\n";
  return ExitCode::kOk;
}

ExitCode RepairEtcd(Session& session) {
  const absl::StatusOr<v1::RepairEtcdResponse> response =
      session.Call(&ClusterStub::RepairEtcd, v1::RepairEtcdRequest());
  if (!response.ok()) return session.Finish(response.status());
  if (PrintMessage(session, *response)) return ExitCode::kOk;
  Table table({{"ENDPOINT"},
               {"VERSION"},
               {"BEFORE", Column::kRight},
               {"NOW", Column::kRight},
               {"IN USE", Column::kRight},
               {"PROBLEMS"}});
  for (const v1::EtcdMember& member : response->members()) {
    table.AddRow({{member.endpoint()},
                  {member.version()},
                  {HumanBytes(member.bytes_before())},
                  {HumanBytes(member.bytes())},
                  {HumanBytes(member.bytes_in_use())},
                  {absl::StrJoin(member.problems(), "; ")}});
  }
  session.out() << table.Render(session.table_style());
  return ExitCode::kOk;
}

}  // namespace

void AddMemberCommands(CLI::App& noun, Session& session) {
  AddCommand(noun, session, "members", "show the servers of the cluster, and which one leads",
             ListMembers);
  auto to = std::make_shared<std::string>();
  CLI::App* handover =
      AddCommand(noun, session, "handover", "let another server lead, as before an upgrade",
                 [to](Session& s) { return HandOver(s, *to); });
  handover->add_option("NAME", *to, "the server that is to lead; default: any that can");
  AddCommand(noun, session, "etcd-repair", "make space in an etcd that is full or has grown large",
             RepairEtcd);
}

}  // namespace berth
