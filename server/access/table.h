// The tables of methods, verbs and roles, for docs/reference/access.md and for auditors.
#ifndef BERTH_SERVER_ACCESS_TABLE_H_
#define BERTH_SERVER_ACCESS_TABLE_H_

#include <string>

namespace berth {

// Markdown: a table of the methods with what each needs, and one of the roles with their verbs.
std::string AccessTable();

}  // namespace berth

#endif  // BERTH_SERVER_ACCESS_TABLE_H_
