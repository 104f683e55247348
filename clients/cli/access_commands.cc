#include <map>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/command.h"
#include "clients/cli/human.h"
#include "clients/cli/page.h"
#include "support/proto_time.h"

namespace berth {
namespace {

using AccessStub = v1::AccessService::StubInterface;

constexpr char kNone[] = "none";

// ---- Words

std::string SubjectText(const v1::AccessSubject& subject) {
  switch (subject.subject_case()) {
    case v1::AccessSubject::kUser:
      return absl::StrCat("user ", subject.user());
    case v1::AccessSubject::kGroup:
      return absl::StrCat("group ", subject.group());
    default:
      return "everyone";
  }
}

std::string WhereText(const v1::AccessGrant& grant) {
  const bool cluster = grant.queue().empty() || grant.queue() == "root";
  return cluster ? "the cluster" : absl::StrCat("queue ", grant.queue());
}

std::string GrantText(const v1::AccessGrant& grant) {
  return absl::StrCat("role ", grant.role(), " for ", WhereText(grant), ", ",
                      SubjectText(grant.subject()));
}

std::string RevocationText(const v1::AccessRevocation& revocation) {
  switch (revocation.what_case()) {
    case v1::AccessRevocation::kUser:
      return absl::StrCat("user ", revocation.user());
    case v1::AccessRevocation::kNode:
      return absl::StrCat("node ", revocation.node());
    default:
      return absl::StrCat("certificate ", revocation.serial());
  }
}

// ---- whoami

std::string WhoText(const v1::WhoAmIResponse& who, const Session& session) {
  Page page;
  page.Add("User", who.user().empty() ? absl::StrCat("nobody: ", who.problem()) : who.user());
  if (!who.groups().empty()) page.Add("Groups", absl::StrJoin(who.groups(), ", "));
  page.Add("Known by", who.proof());
  if (!who.serial().empty()) page.Add("Certificate", who.serial());
  if (who.has_expires()) {
    page.Add("Valid for", HumanDuration(TimeFrom(who.expires()) - session.Now()));
  }
  page.Add("Server", session.server());
  if (!who.enforced()) {
    page.Add("May do", Paint({"everything: access rules are not enforced (berth access init)",
                              Color::kYellow},
                             session.colors()));
  } else if (who.administrator()) {
    page.Add("May do", "everything: an administrator by the server's configuration");
  }
  for (const v1::AccessGrant& grant : who.grants()) page.Add("Role", GrantText(grant));
  if (who.enforced() && who.grants().empty() && !who.administrator()) {
    page.Add("May do", "nothing but with own jobs: no rule names this user or its groups");
  }
  return page.Text();
}

ExitCode WhoAmI(Session& session) {
  const absl::StatusOr<v1::WhoAmIResponse> who =
      session.Call(&AccessStub::WhoAmI, v1::WhoAmIRequest());
  if (!who.ok()) return session.Finish(who.status());
  if (PrintMessage(session, *who)) return ExitCode::kOk;
  if (session.options.format == Format::kName) {
    session.out() << who->user() << "\n";
  } else {
    session.out() << WhoText(*who, session);
  }
  return ExitCode::kOk;
}

// ---- list, roles

ExitCode ListRules(Session& session) {
  const absl::StatusOr<v1::AccessRules> rules =
      session.Call(&AccessStub::GetAccess, v1::GetAccessRequest());
  if (!rules.ok()) return session.Finish(rules.status());
  if (PrintMessage(session, *rules)) return ExitCode::kOk;
  if (!rules->enforced()) {
    session.err() << "access rules are not enforced: everybody may do everything (berth access "
                     "init)\n";
  }
  Table table({{"WHO"}, {"ROLE"}, {"FOR"}});
  for (const v1::AccessGrant& grant : rules->grants()) {
    table.AddRow({{SubjectText(grant.subject())}, {grant.role()}, {WhereText(grant)}});
  }
  for (const v1::AccessRevocation& revocation : rules->revocations()) {
    table.AddRow({{RevocationText(revocation)}, {"refused", Color::kRed}, {"everything"}});
  }
  session.out() << table.Render(session.table_style());
  return ExitCode::kOk;
}

ExitCode ListRoles(Session& session) {
  const absl::StatusOr<v1::AccessRules> rules =
      session.Call(&AccessStub::GetAccess, v1::GetAccessRequest());
  if (!rules.ok()) return session.Finish(rules.status());
  if (PrintMessage(session, *rules)) return ExitCode::kOk;
  Table table({{"ROLE"}, {"BUILT-IN"}, {"VERBS"}});
  for (const v1::AccessRole& role : rules->roles()) {
    table.AddRow(
        {{role.name()}, {role.built_in() ? "yes" : "no"}, {absl::StrJoin(role.verbs(), " ")}});
  }
  session.out() << table.Render(session.table_style());
  return ExitCode::kOk;
}

// ---- Changes

ExitCode Change(Session& session, const v1::ChangeAccessRequest& request, const std::string& done) {
  const absl::StatusOr<v1::ChangeAccessResponse> response =
      session.Call(&AccessStub::ChangeAccess, request);
  if (response.ok()) session.out() << done << (request.validate_only() ? " (dry run)" : "") << "\n";
  return session.Finish(response.status());
}

// Whom a grant is for, and where.
struct GrantArguments {
  std::string role, user, group, queue;
  bool everyone = false;
  bool dry_run = false;
};

v1::AccessGrant GrantFrom(const GrantArguments& arguments) {
  v1::AccessGrant grant;
  v1::AccessSubject& subject = *grant.mutable_subject();
  if (!arguments.user.empty()) subject.set_user(arguments.user);
  if (!arguments.group.empty()) subject.set_group(arguments.group);
  if (arguments.everyone) subject.set_everyone(true);
  grant.set_queue(arguments.queue);
  grant.set_role(arguments.role);
  return grant;
}

ExitCode GrantRole(Session& session, const GrantArguments& arguments, bool revoke) {
  if (arguments.user.empty() && arguments.group.empty() && !arguments.everyone) {
    return session.Finish(absl::InvalidArgumentError("give --user, --group or --everyone"));
  }
  const v1::AccessGrant grant = GrantFrom(arguments);
  v1::ChangeAccessRequest request;
  request.set_validate_only(arguments.dry_run);
  *(revoke ? request.add_revoke() : request.add_grant()) = grant;
  return Change(session, request,
                absl::StrCat(revoke ? "revoked: " : "granted: ", GrantText(grant)));
}

void AddGrant(CLI::App& noun, Session& session, bool revoke) {
  auto arguments = std::make_shared<GrantArguments>();
  CLI::App* command =
      AddCommand(noun, session, revoke ? "revoke" : "grant",
                 revoke ? "take a role back" : "give a role to a user, a group, or everyone",
                 [arguments, revoke](Session& s) { return GrantRole(s, *arguments, revoke); });
  command->add_option("ROLE", arguments->role, "see berth access roles")->required();
  CLI::Option* user =
      command->add_option("--user", arguments->user, "a user, as berth whoami shows them");
  CLI::Option* group =
      command->add_option("--group", arguments->group, "a group, of the users' certificates")
          ->excludes(user);
  command->add_flag("--everyone", arguments->everyone, "each user")
      ->excludes(user)
      ->excludes(group);
  command->add_option("--queue", arguments->queue,
                      "for this queue and all below it; default: for all, and for the cluster");
  command->add_flag("--dry-run", arguments->dry_run, "only check whether it would be accepted");
}

struct RoleArguments {
  std::string name;
  std::vector<std::string> verbs;
};

ExitCode SetRole(Session& session, const RoleArguments& arguments) {
  v1::ChangeAccessRequest request;
  v1::AccessRole* role = request.add_set_roles();
  role->set_name(arguments.name);
  for (const std::string& verb : arguments.verbs) role->add_verbs(verb);
  return Change(session, request, absl::StrCat("role ", arguments.name, " set"));
}

ExitCode DeleteRole(Session& session, const std::string& name) {
  v1::ChangeAccessRequest request;
  request.add_delete_roles(name);
  return Change(session, request, absl::StrCat("role ", name, " deleted"));
}

void AddRoles(CLI::App& noun, Session& session) {
  AddCommand(noun, session, "roles", "show the roles and their verbs", ListRoles);
  auto arguments = std::make_shared<RoleArguments>();
  CLI::App* set = AddCommand(noun, session, "set-role", "create a role of the site, or replace it",
                             [arguments](Session& s) { return SetRole(s, *arguments); });
  set->add_option("NAME", arguments->name, "of the role")->required();
  set->add_option("VERB", arguments->verbs, "what it allows: job.read")->required();
  auto name = std::make_shared<std::string>();
  CLI::App* remove = AddCommand(noun, session, "delete-role", "delete a role of the site",
                                [name](Session& s) { return DeleteRole(s, *name); });
  remove->add_option("NAME", *name, "of a role that nobody has")->required();
}

struct RefusalArguments {
  std::string user, node, serial;
};

ExitCode Refuse(Session& session, const RefusalArguments& arguments, bool readmit) {
  if (arguments.user.empty() && arguments.node.empty() && arguments.serial.empty()) {
    return session.Finish(absl::InvalidArgumentError("give --user, --node or --serial"));
  }
  v1::AccessRevocation what;
  if (!arguments.user.empty()) what.set_user(arguments.user);
  if (!arguments.node.empty()) what.set_node(arguments.node);
  if (!arguments.serial.empty()) what.set_serial(arguments.serial);
  v1::ChangeAccessRequest request;
  *(readmit ? request.add_readmit() : request.add_refuse()) = what;
  return Change(
      session, request,
      absl::StrCat(readmit ? "admitted again: " : "refused from now on: ", RevocationText(what)));
}

void AddRefusal(CLI::App& noun, Session& session, bool readmit) {
  auto arguments = std::make_shared<RefusalArguments>();
  CLI::App* command = AddCommand(
      noun, session, readmit ? "readmit" : "refuse",
      readmit ? "undo a refusal" : "refuse a user, the agent of a node, or one certificate",
      [arguments, readmit](Session& s) { return Refuse(s, *arguments, readmit); });
  CLI::Option* user =
      command->add_option("--user", arguments->user, "all certificates of this user");
  CLI::Option* node =
      command->add_option("--node", arguments->node, "the agent of this node")->excludes(user);
  command->add_option("--serial", arguments->serial, "the certificate with this serial number")
      ->excludes(user)
      ->excludes(node);
}

// ---- check

struct CheckArguments {
  v1::CheckAccessRequest request;
  std::vector<std::string> groups;
};

std::string WhyAllowed(const v1::CheckAccessResponse& answer) {
  if (answer.not_enforced()) return "access rules are not enforced";
  if (answer.administrator()) return "an administrator by the server's configuration";
  if (answer.owner()) return "the owner of the job";
  std::vector<std::string> grants;
  for (const v1::AccessGrant& grant : answer.grants()) grants.push_back(GrantText(grant));
  return absl::StrJoin(grants, "; ");
}

ExitCode Check(Session& session, const CheckArguments& arguments) {
  v1::CheckAccessRequest request = arguments.request;
  for (const std::string& group : arguments.groups) request.add_groups(group);
  const absl::StatusOr<v1::CheckAccessResponse> answer =
      session.Call(&AccessStub::CheckAccess, request);
  if (!answer.ok()) return session.Finish(answer.status());
  if (!PrintMessage(session, *answer)) {
    session.out() << (answer->allowed() ? absl::StrCat("yes: ", WhyAllowed(*answer))
                                        : absl::StrCat("no: ", answer->remedy()))
                  << "\n";
  }
  return answer->allowed() ? ExitCode::kOk : ExitCode::kRefused;
}

void AddCheck(CLI::App& noun, Session& session) {
  auto arguments = std::make_shared<CheckArguments>();
  v1::CheckAccessRequest& request = arguments->request;
  CLI::App* command =
      AddCommand(noun, session, "check", "ask whether somebody may do something (exit code 0 or 1)",
                 [arguments](Session& s) { return Check(s, *arguments); });
  command->add_option("VERB", *request.mutable_verb(), "job.submit, see berth access roles")
      ->required();
  CLI::Option* queue =
      command->add_option("--queue", *request.mutable_queue(), "where; default: for the cluster");
  command->add_option("--job", *request.mutable_job(), "about this job, and its owner")
      ->excludes(queue);
  CLI::Option* user =
      command->add_option("--user", *request.mutable_user(), "about this user; default: you");
  command->add_option("--group", arguments->groups, "a group of that user; may be repeated")
      ->needs(user)
      ->allow_extra_args(false);
}

// ---- init

struct InitArguments {
  std::vector<std::string> admins, admin_groups;
  std::string everyone = "submitter";
  bool dry_run = false;
};

absl::StatusOr<v1::ChangeAccessRequest> FirstRules(const v1::WhoAmIResponse& who,
                                                   const InitArguments& arguments) {
  if (who.enforced()) {
    return absl::FailedPreconditionError("access rules are enforced already: berth access list");
  }
  v1::ChangeAccessRequest request;
  request.set_enforce(true);
  request.set_validate_only(arguments.dry_run);
  std::vector<std::string> admins = arguments.admins;
  if (admins.empty() && arguments.admin_groups.empty()) {
    if (who.user().empty()) {
      return absl::FailedPreconditionError(absl::StrCat("you are nobody to the server (",
                                                        who.problem(),
                                                        "): name an administrator with --admin"));
    }
    admins.push_back(who.user());
  }
  for (const std::string& admin : admins) {
    *request.add_grant() = GrantFrom({.role = "admin", .user = admin});
  }
  for (const std::string& group : arguments.admin_groups) {
    *request.add_grant() = GrantFrom({.role = "admin", .group = group});
  }
  if (arguments.everyone != kNone) {
    *request.add_grant() = GrantFrom({.role = arguments.everyone, .everyone = true});
  }
  return request;
}

ExitCode Init(Session& session, const InitArguments& arguments) {
  const absl::StatusOr<v1::WhoAmIResponse> who =
      session.Call(&AccessStub::WhoAmI, v1::WhoAmIRequest());
  if (!who.ok()) return session.Finish(who.status());
  const absl::StatusOr<v1::ChangeAccessRequest> request = FirstRules(*who, arguments);
  if (!request.ok()) return session.Finish(request.status());
  const absl::StatusOr<v1::ChangeAccessResponse> response =
      session.Call(&AccessStub::ChangeAccess, *request);
  if (!response.ok()) return session.Finish(response.status());
  for (const v1::AccessGrant& grant : request->grant()) {
    session.out() << (arguments.dry_run ? "would grant: " : "granted: ") << GrantText(grant)
                  << "\n";
  }
  session.out() << (arguments.dry_run
                        ? "would be enforced: what no rule allows is refused\n"
                        : "enforced: what no rule allows is refused; jobs go on as before\n");
  return ExitCode::kOk;
}

void AddInit(CLI::App& noun, Session& session) {
  auto arguments = std::make_shared<InitArguments>();
  CLI::App* command = AddCommand(noun, session, "init",
                                 "write the first rules and enforce them; it cannot be undone",
                                 [arguments](Session& s) { return Init(s, *arguments); });
  command->add_option("--admin", arguments->admins, "an administrator; default: you")
      ->allow_extra_args(false);
  command->add_option("--admin-group", arguments->admin_groups, "a group of administrators")
      ->allow_extra_args(false);
  command->add_option("--everyone", arguments->everyone,
                      "what each user may do: a role, or none; default submitter");
  command->add_flag("--dry-run", arguments->dry_run, "only print the rules");
}

}  // namespace

void AddAccessCommands(CLI::App& app, Session& session) {
  AddCommand(app, session, "whoami", "show who you are to the server, and your roles", WhoAmI);
  CLI::App& noun = *AddNoun(app, "access", "say who may do what");
  AddCommand(noun, session, "list", "show the rules, as far as you may change them", ListRules);
  AddGrant(noun, session, false);
  AddGrant(noun, session, true);
  AddCheck(noun, session);
  AddInit(noun, session);
  AddRoles(noun, session);
  AddRefusal(noun, session, false);
  AddRefusal(noun, session, true);
}

}  // namespace berth
