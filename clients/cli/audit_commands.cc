// berth audit: who changed what, and who was refused.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/command.h"
#include "clients/cli/human.h"
#include "clients/cli/past_time.h"
#include "clients/cli/resource_names.h"
#include "support/proto_json.h"
#include "support/proto_time.h"

namespace berth {
namespace {

using AuditStub = v1::AuditService::StubInterface;

constexpr size_t kNamesShown = 3;

struct AuditArguments {
  v1::ListAuditRequest request;
  std::string since = "24h", until;
  bool verify = false;
};

absl::Status FillTimes(AuditArguments& arguments, const Session& session) {
  const absl::TimeZone zone = session.io().time_zone;
  const absl::StatusOr<absl::Time> since = PastTime(arguments.since, session, zone);
  if (!since.ok()) return since.status();
  ToProto(*since, arguments.request.mutable_since());
  if (arguments.until.empty()) return absl::OkStatus();
  const absl::StatusOr<absl::Time> until = PastTime(arguments.until, session, zone);
  if (!until.ok()) return until.status();
  ToProto(*until, arguments.request.mutable_until());
  return absl::OkStatus();
}

std::string AuditActorText(const v1::AuditActor& actor) {
  if (actor.kind() == v1::AuditActor::SERVER) return "(server)";
  if (actor.name().empty()) return "-";
  return actor.kind() == v1::AuditActor::NODE ? absl::StrCat("node/", actor.name()) : actor.name();
}

// "job a, b submitted; queue q closed".
std::string AuditChangesText(const v1::AuditEntry& entry) {
  std::vector<std::string> parts;
  for (const v1::AuditChange& change : entry.changes()) {
    std::vector<std::string> names;
    for (const std::string& name : change.names()) {
      if (names.size() == kNamesShown) break;
      names.push_back(name);
    }
    const auto all = static_cast<size_t>(change.names_size());
    std::string shown = absl::StrJoin(names, ", ");
    if (all > names.size()) absl::StrAppend(&shown, " and ", all - names.size(), " more");
    parts.push_back(
        absl::StrCat(change.object(), shown.empty() ? "" : " ", shown, " ", change.action()));
  }
  if (!entry.message().empty()) parts.push_back(entry.message());
  return parts.empty() ? "-" : absl::StrJoin(parts, "; ");
}

Table CommandTable() {
  return Table({{"TIME"},
                {"ACTOR"},
                {"METHOD"},
                {"CHANGE"},
                {"REVISION", Column::kRight | Column::kWide},
                {"DOOR", Column::kWide},
                {"ADDRESS", Column::kWide},
                {"REQUEST", Column::kWide}});
}

Table RefusedTable() {
  return Table({{"TIME"},
                {"ACTOR"},
                {"METHOD"},
                {"TARGET"},
                {"REFUSAL"},
                {"DOOR", Column::kWide},
                {"ADDRESS", Column::kWide},
                {"REQUEST", Column::kWide}});
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

void AddAuditRow(const v1::AuditEntry& entry, bool refused, absl::TimeZone zone, Table& table) {
  const v1::AuditActor& actor = entry.actor();
  std::vector<Word> cells = {{HumanTime(entry.has_time(), entry.time(), zone)},
                             {AuditActorText(actor)},
                             {OrDash(entry.method())}};
  if (refused) {
    cells.push_back({OrDash(entry.target())});
    cells.push_back({OrDash(entry.message())});
  } else {
    cells.push_back({AuditChangesText(entry)});
    cells.push_back({absl::StrCat(entry.revision())});
  }
  for (std::string text :
       {HumanEnum(actor.door()), OrDash(actor.address()), OrDash(actor.request_id())}) {
    cells.push_back({std::move(text)});
  }
  table.AddRow(std::move(cells));
}

// JSON is printed page by page, because an audit may be long.
absl::Status ShowAudit(Session& session, AuditArguments& arguments) {
  absl::Status status = FillTimes(arguments, session);
  if (!status.ok()) return status;
  const bool json = session.options.format == Format::kJson;
  session.exact_answers = json;  // JSON escapes by its own rules
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  const bool refused = arguments.request.refused();
  Table table = refused ? RefusedTable() : CommandTable();
  status = (*client)->List<AuditStub, v1::ListAuditRequest, v1::ListAuditResponse>(
      &AuditStub::ListAudit, arguments.request, [&](const v1::ListAuditResponse& page) {
        for (const v1::AuditEntry& entry : page.entries()) {
          if (json) session.out() << WriteJson(entry) << "\n";
          if (!json) AddAuditRow(entry, refused, session.io().time_zone, table);
        }
        return session.out().good();  // false: the reader is gone
      });
  if (!status.ok() || json) return status;
  if (table.row_count() == 0) session.err() << "no entries\n";
  session.out() << table.Render(session.table_style());
  return status;
}

// The verdict on one chain; its hash can be kept, to be compared later.
ExitCode VerifyChain(Session& session, bool refused) {
  v1::VerifyAuditRequest request;
  request.set_refused(refused);
  const absl::StatusOr<v1::VerifyAuditResponse> found =
      session.Call(&AuditStub::VerifyAudit, request);
  if (!found.ok()) return session.Finish(found.status());
  const char* name = refused ? "refused calls" : "commands";
  if (session.options.format == Format::kJson) {
    session.out() << WriteJson(*found) << "\n";
  } else if (!found->broken().empty()) {
    session.out() << name << ": BROKEN: " << found->broken() << "\n";
  } else if (found->entries() == 0) {
    session.out() << name << ": no entries\n";
  } else {
    session.out() << name << ": entries " << found->first_sequence() << " to "
                  << found->last_sequence() << " are unchanged; hash " << found->head_hash()
                  << "\n";
  }
  return found->broken().empty() ? ExitCode::kOk : ExitCode::kRefused;
}

ExitCode RunAudit(Session& session, AuditArguments& arguments) {
  if (!arguments.verify) return session.Finish(ShowAudit(session, arguments));
  ExitCode code = ExitCode::kOk;
  if (!arguments.request.refused()) code = VerifyChain(session, false);
  const ExitCode refused = VerifyChain(session, true);
  return code == ExitCode::kOk ? refused : code;
}

}  // namespace

void AddAuditCommand(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<AuditArguments>();
  CLI::App* audit = AddCommand(
      app, session, "audit",
      "show who changed what, or with --refused who was refused; -o json prints one object a line",
      [arguments](Session& s) { return RunAudit(s, *arguments); });
  v1::ListAuditRequest& request = arguments->request;
  audit->add_option("--since", arguments->since,
                    "how long ago (24h, 30d), or a time (2026-12-01T10:00); default 24h");
  audit->add_option("--until", arguments->until, "likewise; default now");
  audit->add_option_function<std::string>(
      "--actor", [&request](const std::string& name) { request.set_actor(name); },
      "only this user or node");
  audit
      ->add_option_function<std::string>(
          "--job", [&request](const std::string& name) { request.set_job(name); },
          "only what concerns this job")
      ->transform(NameOf("job"));
  audit->add_flag_callback(
      "--refused", [&request] { request.set_refused(true); },
      "calls that were refused, instead of commands");
  audit->add_flag("--verify", arguments->verify,
                  "check the hashes of all entries that are kept, and print the last one; exit "
                  "code 1 if an entry was changed");
}

}  // namespace berth
