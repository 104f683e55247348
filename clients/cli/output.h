// The formats of -o for any list of resources.
#ifndef BERTH_CLIENTS_CLI_OUTPUT_H_
#define BERTH_CLIENTS_CLI_OUTPUT_H_

#include <functional>
#include <string>
#include <vector>

#include "clients/cli/session.h"
#include "google/protobuf/message.h"

namespace berth {

// One document; a single resource is an object, a list an array.
std::string JsonOf(const google::protobuf::Message& message);
// One object with the fields of both.
std::string JsonOf(const google::protobuf::Message& message,
                   const google::protobuf::Message& besides);
// Likewise, with a newline at the end. It is not a manifest (manifest.h): it has all fields of the
// JSON.
std::string YamlOf(const google::protobuf::Message& message);

// Prints texts that are formatted for -o: pages with an empty line between them; with -o json one
// object (`single`) or an array, with -o yaml documents, with -o name lines.
void PrintDocuments(Session& session, const std::vector<std::string>& documents, bool single);

// How to print a kind of resource.
template <class T>
struct Shape {
  const char* noun;  // "job": names are "job/NAME"
  std::function<Table(const std::vector<T>&, const Session&)> table;
  std::function<std::string(const T&)> yaml;
};

// Prints the resources in the format of -o. `single`: one was requested by name, so JSON is not an
// array.
template <class T>
void Print(Session& session, const std::vector<T>& resources, bool single, const Shape<T>& shape) {
  std::ostream& out = session.out();
  switch (session.options.format) {
    case Format::kTable:
    case Format::kWide:
      if (resources.empty()) session.err() << "no " << shape.noun << "s\n";
      out << shape.table(resources, session).Render(session.table_style());
      return;
    case Format::kName:
      for (const T& resource : resources) out << shape.noun << "/" << resource.name() << "\n";
      return;
    case Format::kYaml:
      for (const T& resource : resources) session.NextDocument() << shape.yaml(resource);
      return;
    case Format::kJson:
      if (single) {
        out << JsonOf(resources.front()) << "\n";
        return;
      }
      out << "[";
      for (size_t i = 0; i < resources.size(); ++i)
        out << (i == 0 ? "\n" : ",\n") << JsonOf(resources[i]);
      out << (resources.empty() ? "]\n" : "\n]\n");
      return;
    case Format::kCsv:
      return;  // refused: FormatsOf has it only for commands that do not use this
  }
}

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_OUTPUT_H_
