#include "tests/openb/trace.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace berth::openb {
namespace {

using Row = std::vector<std::string>;

[[noreturn]] void Fail(const std::string& path, const char* reason) {
  std::fprintf(stderr, "%s: %s\n", path.c_str(), reason);
  std::exit(1);
}

std::string ReadGzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) Fail(path, "cannot be opened");
  std::string text;
  std::array<char, 65536> buffer;
  int read = 0;
  while ((read = gzread(file, buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<size_t>(read));
  }
  if (gzclose(file) != Z_OK || read < 0) Fail(path, "damaged");
  return text;
}

// Without the header line.
std::vector<Row> ReadRows(const std::string& path, size_t least_columns) {
  std::vector<Row> rows;
  for (absl::string_view line : absl::StrSplit(ReadGzip(path), '\n', absl::SkipEmpty())) {
    rows.push_back(absl::StrSplit(absl::StripSuffix(line, "\r"), ','));
    if (rows.back().size() < least_columns) Fail(path, "a line is too short");
  }
  if (rows.empty()) Fail(path, "empty");
  rows.erase(rows.begin());
  return rows;
}

int64_t Number(const std::string& text) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) Fail(text, "no number");
  return number;
}

size_t ModelIndex(std::vector<std::string>* models, const std::string& name) {
  const auto it = std::find(models->begin(), models->end(), name);
  if (it != models->end()) return static_cast<size_t>(it - models->begin());
  models->push_back(name);
  return models->size() - 1;
}

Node NodeOf(const Row& row, Trace* trace) {
  Node node;
  node.room.cpu_millis = Number(row[1]);
  node.room.memory_mib = Number(row[2]);
  node.room.whole = static_cast<int32_t>(Number(row[3]));
  node.room.model = static_cast<int32_t>(ModelIndex(&trace->models, row[4]));
  return node;
}

Pod PodOf(const Row& row, Trace* trace) {
  Pod pod;
  pod.request.cpu_millis = Number(row[1]);
  pod.request.memory_mib = Number(row[2]);
  const int64_t devices = Number(row[3]);
  const int64_t amount = devices == 0 ? 0 : Number(row[4]);
  const bool share = devices == 1 && amount < kWholeDevice;
  pod.request.devices = share ? 0 : static_cast<int32_t>(devices);
  pod.request.share = share ? static_cast<int32_t>(amount) : 0;
  if (row.size() < 6 || pod.request.amount() == 0) return pod;
  for (absl::string_view model : absl::StrSplit(row[5], '|', absl::SkipEmpty())) {
    pod.request.models |= uint64_t{1} << ModelIndex(&trace->models, std::string(model));
  }
  return pod;
}

void Shuffle(std::vector<Pod>* pods, Random* random) {
  for (size_t i = pods->size(); i > 1; --i) std::swap((*pods)[i - 1], (*pods)[random->Below(i)]);
}

}  // namespace

Trace Load(const std::string& folder, const std::string& list) {
  Trace trace;
  for (const Row& row : ReadRows(folder + "/openb_node_list_gpu_node.csv.gz", 5)) {
    trace.nodes.push_back(NodeOf(row, &trace));
    trace.devices += trace.nodes.back().room.whole;
  }
  std::vector<Row> rows = ReadRows(folder + "/openb_pod_list_" + list + ".csv.gz", 5);
  std::sort(rows.begin(), rows.end());
  for (const Row& row : rows) trace.pods.push_back(PodOf(row, &trace));
  return trace;
}

std::vector<Pod> Arrivals(const Trace& trace, uint64_t seed) {
  Random random(seed);
  std::vector<Pod> pods = trace.pods;
  Shuffle(&pods, &random);
  int64_t demand = 0;
  for (const Pod& pod : pods) demand += pod.request.amount();
  while (true) {
    const Pod& next = trace.pods[random.Below(trace.pods.size())];
    demand += next.request.amount();
    if (demand > trace.devices * kWholeDevice * 13 / 10) return pods;
    pods.push_back(next);
  }
}

std::vector<Request> Sample(const Trace& trace, size_t count, uint64_t seed) {
  Random random(~seed);  // another stream than that of the arrivals
  std::vector<Pod> pods = trace.pods;
  Shuffle(&pods, &random);
  pods.resize(std::min(count, pods.size()));
  std::vector<Request> requests;
  for (const Pod& pod : pods) requests.push_back(pod.request);
  return requests;
}

}  // namespace berth::openb
