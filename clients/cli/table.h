// Tables for people, laid out by libsmartcols. Rows may be children of other rows (the tree of
// queues).
#ifndef BERTH_CLIENTS_CLI_TABLE_H_
#define BERTH_CLIENTS_CLI_TABLE_H_

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "clients/cli/human.h"

namespace berth {

struct Column {
  enum Flags { kPlain = 0, kRight = 1, kTree = 2, kWide = 4, kShorten = 8 };
  std::string name;
  int flags = kPlain;  // kWide: only with -o wide; kShorten: shortened on a narrow terminal
};

struct TableStyle {
  bool wide = false;
  bool headers = true;
  bool colors = false;
  size_t width = 0;  // of the terminal: kShorten columns get the remaining width; 0: no limit
};

// A plain value: filled, then rendered.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One word for each column, including kWide columns. Returns the number of the row, to add
  // children to it.
  size_t AddRow(std::vector<Word> cells, absl::optional<size_t> parent = absl::nullopt);
  size_t row_count() const { return rows_.size(); }
  // Each line ends with a newline, without trailing blanks.
  std::string Render(const TableStyle& style) const;

 private:
  struct Row {
    std::vector<Word> cells;
    absl::optional<size_t> parent;  // earlier in the table
  };
  // The width of a kShorten column in characters.
  size_t Room(const TableStyle& style) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

// The text in its color, or unchanged.
std::string Paint(const Word& word, bool colors);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TABLE_H_
