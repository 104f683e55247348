// berth priority-class: priorities of jobs by name. They are created and changed by apply.
#include <memory>

#include "absl/strings/str_cat.h"
#include "clients/cli/by_name.h"
#include "clients/cli/priority_class_view.h"

namespace berth {
namespace {

using PriorityClassStub = v1::PriorityClassService::StubInterface;

absl::Status ListPriorityClasses(Session& session) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  std::vector<v1::PriorityClass> classes;
  using Page = v1::ListPriorityClassesResponse;
  const absl::Status status =
      (*client)->List<PriorityClassStub, v1::ListPriorityClassesRequest, Page>(
          &PriorityClassStub::ListPriorityClasses, v1::ListPriorityClassesRequest(),
          [&](const Page& page) {
            classes.insert(classes.end(), page.priority_classes().begin(),
                           page.priority_classes().end());
            return true;
          });
  if (!status.ok()) return status;
  const bool table =
      session.options.format == Format::kTable || session.options.format == Format::kWide;
  if (classes.empty() && table) {
    session.err() << "no priority classes; berth apply -f creates them (kind: PriorityClass)\n";
    return absl::OkStatus();
  }
  Print(session, classes, false, PriorityClassShape());
  return absl::OkStatus();
}

}  // namespace

void AddPriorityClassCommands(CLI::App& app, Session& session) {
  CLI::App& noun = *AddNoun(app, "priority-class", "priorities of jobs by name");
  AddCommand(noun, session, "list", "list priority classes, highest value first",
             [](Session& s) { return s.Finish(ListPriorityClasses(s)); });
  AddNames(noun, session, "get", "show priority classes by name",
           [](Session& s, const Names& names) {
             return GetByName(s, names, &PriorityClassStub::GetPriorityClass, PriorityClassShape());
           });
  AddNames(noun, session, "delete", "delete priority classes; their jobs keep their priority",
           [](Session& s, const Names& names) {
             return DeleteByName(s, names, "priority-class",
                                 [](Client& client, const std::string& name) {
                                   return client.DeletePriorityClass(name);
                                 });
           });
}

}  // namespace berth
