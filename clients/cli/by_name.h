// Commands that take one or more names. Every name is tried and every error printed; the exit code
// is that of the first error (ForEachName).
#ifndef BERTH_CLIENTS_CLI_BY_NAME_H_
#define BERTH_CLIENTS_CLI_BY_NAME_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cli/command.h"

namespace berth {

using Names = std::vector<std::string>;

// "berth NOUN VERB NAME...".
CLI::App* AddNames(CLI::App& noun, Session& session, const std::string& verb,
                   const std::string& description,
                   std::function<ExitCode(Session&, const Names&)> run);

// A method of the API that takes a name and returns the resource.
template <class Stub, class Request, class T>
using NamedCall = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, T*);

template <class Stub, class Request, class T>
absl::StatusOr<T> CallByName(Session& session, NamedCall<Stub, Request, T> method,
                             const std::string& name, Request request = Request()) {
  request.set_name(name);
  return session.Call(method, request);
}

// Prints the resources that exist, together.
template <class Stub, class Request, class T>
ExitCode GetByName(Session& session, const Names& names, NamedCall<Stub, Request, T> get,
                   const Shape<T>& shape) {
  std::vector<T> found;
  const ExitCode code = ForEachName(session, names, [&](const std::string& name) {
    absl::StatusOr<T> resource = CallByName(session, get, name);
    if (resource.ok()) found.push_back(*std::move(resource));
    return resource.status();
  });
  if (!found.empty()) Print(session, found, names.size() == 1, shape);
  return code;
}

// Prints pages of text with an empty line between them, or the resources with -o json, yaml and
// name. `text(resource)` returns a page or an error; `more(resource)` returns a message whose
// fields are added to the object, or an error.
template <class Stub, class Request, class T, class Text, class More>
ExitCode DescribeByName(Session& session, const Names& names, NamedCall<Stub, Request, T> get,
                        const char* noun, const Text& text, const More& more) {
  const Format format = session.options.format;
  std::vector<std::string> documents;
  const ExitCode code = ForEachName(session, names, [&](const std::string& name) {
    const absl::StatusOr<T> resource = CallByName(session, get, name);
    if (!resource.ok()) return resource.status();
    if (format == Format::kName) {
      documents.push_back(absl::StrCat(noun, "/", name, "\n"));
      return absl::OkStatus();
    }
    if (format == Format::kJson || format == Format::kYaml) {
      const auto besides = more(*resource);
      if (!besides.ok()) return besides.status();
      documents.push_back(format == Format::kJson ? JsonOf(*resource, *besides)
                                                  : YamlOf(*resource) + YamlOf(*besides));
      return absl::OkStatus();
    }
    const absl::StatusOr<std::string> page = text(*resource);
    if (page.ok()) documents.push_back(*page);
    return page.status();
  });
  PrintDocuments(session, documents, names.size() == 1);
  return code;
}

// Adds no fields to the object.
template <class Stub, class Request, class T, class Text>
ExitCode DescribeByName(Session& session, const Names& names, NamedCall<Stub, Request, T> get,
                        const char* noun, const Text& text) {
  return DescribeByName(session, names, get, noun, text, [](const T&) {
    return absl::StatusOr<v1::ListTasksResponse>(v1::ListTasksResponse());
  });
}

// Calls `change` with `request` for each name. `done` describes the result, such as "cancelled".
template <class Stub, class Request, class T>
ExitCode ChangeByName(Session& session, const Names& names, NamedCall<Stub, Request, T> change,
                      const std::string& done, const Shape<T>& shape,
                      const Request& request = Request()) {
  return ForEachName(session, names, [&](const std::string& name) {
    const absl::StatusOr<T> resource = CallByName(session, change, name, request);
    if (resource.ok()) PrintChanged(session, *resource, done, shape);
    return resource.status();
  });
}

// `remove(client, name)` returns an absl::Status.
template <class Remove>
ExitCode DeleteByName(Session& session, const Names& names, const char* noun,
                      const Remove& remove) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return session.Finish(client.status());
  return ForEachName(session, names, [&](const std::string& name) {
    const absl::Status status = remove(**client, name);
    const bool name_only = session.options.format == Format::kName;
    if (status.ok()) session.out() << noun << "/" << name << (name_only ? "\n" : " deleted\n");
    return status;
  });
}

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_BY_NAME_H_
