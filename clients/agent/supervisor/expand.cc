#include "clients/agent/supervisor/expand.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace berth {
namespace {

constexpr std::array<std::string_view, 8> kShells = {"sh",  "bash", "dash", "ash",
                                                     "ksh", "mksh", "zsh",  "rbash"};

// A program that only starts another one, named in its arguments.
struct Starter {
  std::string_view name;
  std::string_view valued;  // options with a separate value, each between spaces
  int arguments = 0;        // positional arguments before the program
  bool assigns = false;     // "NAME=value" may also come before it
};
constexpr std::array<Starter, 10> kStarters = {{
    {"env", " -u -C --unset --chdir ", 0, true},
    {"nice", " -n --adjustment "},
    {"ionice", " -c -n --class --classdata "},
    {"timeout", " -k -s --kill-after --signal ", 1},
    {"stdbuf", " -i -o -e --input --output --error "},
    {"nohup", ""},
    {"setsid", ""},
    {"busybox", ""},
    {"numactl",
     " -i -p -P -N -m -C -w --interleave --preferred --preferred-many --cpunodebind "
     "--membind --physcpubind --weighted-interleave "},
    {"taskset", "", 1},
}};

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsNameChar(char c) { return IsNameStart(c) || (c >= '0' && c <= '9'); }

// The reference at `text[at]` == '$': its name and length, or length 0 if there is none.
struct Reference {
  std::string name;
  size_t length = 0;
};
Reference ReferenceAt(const std::string& text, size_t at) {
  const bool braces = at + 1 < text.size() && text[at + 1] == '{';
  const size_t begin = at + (braces ? 2 : 1);
  size_t end = begin;
  if (begin >= text.size() || !IsNameStart(text[begin])) return {};
  while (end < text.size() && IsNameChar(text[end])) ++end;
  if (braces && (end >= text.size() || text[end] != '}')) return {};
  return {text.substr(begin, end - begin), end + (braces ? 1 : 0) - at};
}

std::map<std::string, std::string> ToMap(const std::vector<std::string>& entries) {
  std::map<std::string, std::string> environment;
  for (const std::string& entry : entries) {
    const size_t equals = entry.find('=');
    if (equals != std::string::npos)
      environment[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return environment;
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// The index after the options, assignments and arguments of the starter at `at`.
size_t SkipStarter(const std::vector<std::string>& command, size_t at, const Starter& starter) {
  for (++at; at < command.size() && command[at].starts_with('-'); ++at) {
    if (command[at] == "--") {
      ++at;
      break;
    }
    if (starter.valued.find(" " + command[at] + " ") != std::string_view::npos) ++at;
  }
  while (starter.assigns && at < command.size() && command[at].find('=') != std::string::npos) ++at;
  return at + static_cast<size_t>(starter.arguments);
}

// The index of the program that finally runs; may be past the last argument.
size_t ProgramAt(const std::vector<std::string>& command) {
  size_t at = 0;
  while (at < command.size()) {
    const std::string name = BaseName(command[at]);
    const auto* found = std::find_if(kStarters.begin(), kStarters.end(),
                                     [&](const Starter& starter) { return starter.name == name; });
    if (found == kStarters.end()) break;
    at = SkipStarter(command, at, *found);
  }
  return at;
}

}  // namespace

std::string ExpandVariables(const std::string& text,
                            const std::map<std::string, std::string>& environment) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      out.push_back(text[at++]);
      continue;
    }
    if (at + 1 < text.size() && text[at + 1] == '$') {
      const Reference escaped = ReferenceAt(text, at + 1);
      out.append(escaped.length > 0 ? text.substr(at + 1, escaped.length) : "$$");
      at += escaped.length > 0 ? escaped.length + 1 : 2;
      continue;
    }
    const Reference reference = ReferenceAt(text, at);
    const auto found = reference.length > 0 ? environment.find(reference.name) : environment.end();
    const size_t length = std::max<size_t>(reference.length, 1);
    out.append(found != environment.end() ? found->second : text.substr(at, length));
    at += length;
  }
  return out;
}

// Options may be combined ("-euc"), and "-o" takes the next argument ("-eo pipefail -c").
size_t ShellScriptAt(const std::vector<std::string>& command) {
  const size_t shell = ProgramAt(command);
  if (shell >= command.size()) return 0;
  const std::string program = BaseName(command[shell]);
  if (std::find(kShells.begin(), kShells.end(), program) == kShells.end()) return 0;
  bool from_argument = false;
  for (size_t i = shell + 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word.size() < 2 || (word[0] != '-' && word[0] != '+')) return from_argument ? i : 0;
    if (word == "--") return from_argument && i + 1 < command.size() ? i + 1 : 0;
    if (word.starts_with("--")) continue;
    if (word[0] == '-' && word.find('c') != std::string::npos) from_argument = true;
    if (word.back() == 'o' || word.back() == 'O') ++i;
  }
  return 0;
}

std::vector<std::string> ExpandCommand(const std::vector<std::string>& command,
                                       const std::vector<std::string>& environment) {
  const std::map<std::string, std::string> variables = ToMap(environment);
  const size_t script = ShellScriptAt(command);
  std::vector<std::string> expanded;
  for (size_t i = 0; i < command.size(); ++i) {
    const bool keeps = script != 0 && i == script;
    expanded.push_back(
        ExpandVariables(command[i], keeps ? std::map<std::string, std::string>() : variables));
  }
  return expanded;
}

}  // namespace berth
