#include "offline/replay/csv_rows.h"

#include <csv.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace berth::replay {
namespace {

class Rows {
 public:
  using Take = absl::FunctionRef<absl::Status(const CsvRow&, int64_t line)>;
  explicit Rows(Take take) : take_(take) {}

  absl::Status Read(absl::string_view text, const std::string& file) {
    csv_parser parser;
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0) {
      return absl::InternalError("cannot initialize libcsv");
    }
    bool well = true;
    for (int64_t line = 1; well && status_.ok() && !text.empty(); ++line) {
      const absl::string_view piece = text.substr(0, text.find('\n'));
      const size_t size = std::min(piece.size() + 1, text.size());
      if (!within_) line_ = line;
      within_ = within_ || !absl::StripAsciiWhitespace(piece).empty();
      well = csv_parse(&parser, text.data(), size, &OnField, &OnRow, this) == size;
      text.remove_prefix(size);
    }
    if (well && status_.ok()) well = csv_fini(&parser, &OnField, &OnRow, this) == 0;
    const int error = csv_error(&parser);
    csv_free(&parser);
    if (!status_.ok() || well) return status_;
    return absl::InvalidArgumentError(absl::StrCat(file, ":", line_, ": ", csv_strerror(error)));
  }

 private:
  static void OnField(void* text, size_t length, void* self) {
    auto& rows = *static_cast<Rows*>(self);
    rows.row_.emplace_back(static_cast<const char*>(text), length);
  }
  static void OnRow(int, void* self) {
    auto& rows = *static_cast<Rows*>(self);
    if (rows.status_.ok()) rows.status_ = rows.take_(rows.row_, rows.line_);
    rows.row_.clear();
    rows.within_ = false;
  }

  Take take_;
  CsvRow row_;
  int64_t line_ = 1;     // of the row's beginning
  bool within_ = false;  // a row: quoted fields may span several lines
  absl::Status status_;
};

}  // namespace

absl::Status ForEachRow(absl::string_view text, const std::string& file,
                        absl::FunctionRef<absl::Status(const CsvRow& row, int64_t line)> take) {
  return Rows(take).Read(text, file);
}

absl::StatusOr<absl::Duration> ParseLogTime(absl::string_view text) {
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds) && seconds > -1e15 && seconds < 1e15) {
    return absl::Seconds(seconds);
  }
  absl::Time time;
  std::string error;
  for (const char* format : {"%Y-%m-%d %H:%M:%E*S", absl::RFC3339_full}) {
    if (absl::ParseTime(format, text, absl::UTCTimeZone(), &time, &error)) {
      return time - absl::UnixEpoch();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not a time"));
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace berth::replay
