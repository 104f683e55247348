#include "clients/cli/table.h"

#include <libsmartcols/libsmartcols.h>
#include <locale.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace berth {
namespace {

constexpr absl::string_view kGap = "  ";  // between columns
constexpr size_t kLeastRoom = 16;         // a kShorten column never gets less

using TablePtr = std::unique_ptr<libscols_table, decltype(&scols_unref_table)>;

const char* Escape(Color color) {
  switch (color) {
    case Color::kNone:
      return nullptr;
    case Color::kGreen:
      return "\033[32m";
    case Color::kYellow:
      return "\033[33m";
    case Color::kRed:
      return "\033[31m";
    case Color::kBlue:
      return "\033[34m";
    case Color::kGray:
      return "\033[90m";
  }
  return nullptr;
}

// Only the indent marks children, as in a directory listing.
void UseIndents(libscols_table* table) {
  libscols_symbols* symbols = scols_new_symbols();
  scols_symbols_set_branch(symbols, "  ");
  scols_symbols_set_vertical(symbols, "  ");
  scols_symbols_set_right(symbols, "  ");
  scols_table_set_symbols(table, symbols);
  scols_unref_symbols(symbols);
}

TablePtr NewTable(const TableStyle& style) {
  TablePtr table(scols_new_table(), &scols_unref_table);
  scols_table_enable_noheadings(table.get(), style.headers ? 0 : 1);
  scols_table_enable_colors(table.get(), style.colors ? 1 : 0);
  scols_table_enable_noencoding(table.get(), 1);
  // Columns are as wide as their content, except kShorten columns on a terminal.
  scols_table_set_termforce(table.get(), SCOLS_TERMFORCE_NEVER);
  scols_table_set_column_separator(table.get(), kGap.data());
  UseIndents(table.get());
  return table;
}

int ColumnFlags(const Column& column) {
  return ((column.flags & Column::kRight) ? SCOLS_FL_RIGHT : 0) |
         ((column.flags & Column::kTree) ? SCOLS_FL_TREE : 0);
}

std::string WithoutTrailingBlanks(absl::string_view text) {
  std::string out;
  for (absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    absl::StrAppend(&out, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return out;
}

// Sets UTF-8 for this thread during its lifetime, whatever the locale of the process. In the locale
// "C", libsmartcols 2.38 loops forever on text that is not ASCII.
class InUtf8 {
 public:
  InUtf8() : utf8_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (utf8_ != nullptr) before_ = uselocale(utf8_);
  }
  ~InUtf8() {
    if (utf8_ == nullptr) return;
    uselocale(before_);
    freelocale(utf8_);
  }
  InUtf8(const InUtf8&) = delete;
  InUtf8& operator=(const InUtf8&) = delete;

 private:
  const locale_t utf8_;
  locale_t before_ = nullptr;
};

// A system without C.UTF-8 gets ASCII.
std::string Readable(const std::string& text) {
  if (MB_CUR_MAX > 1) return text;
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0) != 0x80) out += byte < 0x80 ? c : '?';
  }
  return out;
}

// Characters, not bytes.
size_t Length(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string CutTo(const std::string& text, size_t room) {
  if (Length(text) <= room) return text;
  size_t bytes = 0;
  for (size_t left = room - std::min<size_t>(room, 3); bytes < text.size(); ++bytes) {
    const bool begins = (static_cast<unsigned char>(text[bytes]) & 0xc0) != 0x80;
    if (begins && left-- == 0) break;
  }
  return text.substr(0, bytes) + "...";
}

}  // namespace

size_t Table::Room(const TableStyle& style) const {
  if (style.width == 0) return std::string::npos;
  size_t taken = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if ((columns_[i].flags & Column::kWide) && !style.wide) continue;
    if (columns_[i].flags & Column::kShorten) continue;
    size_t widest = style.headers ? columns_[i].name.size() : 0;
    for (const Row& row : rows_) widest = std::max(widest, Length(row.cells[i].text));
    taken += widest + kGap.size();
  }
  return std::max(kLeastRoom, style.width - std::min(style.width, taken));
}

size_t Table::AddRow(std::vector<Word> cells, absl::optional<size_t> parent) {
  rows_.push_back({std::move(cells), parent});
  return rows_.size() - 1;
}

std::string Table::Render(const TableStyle& style) const {
  const InUtf8 utf8;
  TablePtr table = NewTable(style);
  std::vector<size_t> shown;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if ((columns_[i].flags & Column::kWide) && !style.wide) continue;
    scols_table_new_column(table.get(), columns_[i].name.c_str(), 0, ColumnFlags(columns_[i]));
    shown.push_back(i);
  }
  const size_t room = Room(style);
  std::vector<libscols_line*> lines;  // owned by the table
  for (const Row& row : rows_) {
    libscols_line* line =
        scols_table_new_line(table.get(), row.parent ? lines[*row.parent] : nullptr);
    for (size_t i = 0; i < shown.size(); ++i) {
      const Word& word = row.cells[shown[i]];
      const bool shorten = (columns_[shown[i]].flags & Column::kShorten) != 0;
      const std::string text = Readable(shorten ? CutTo(word.text, room) : word.text);
      scols_line_set_data(line, i, text.empty() ? "-" : text.c_str());
      if (style.colors) scols_cell_set_color(scols_line_get_cell(line, i), Escape(word.color));
    }
    lines.push_back(line);
  }
  char* text = nullptr;
  if (rows_.empty()) return "";
  scols_print_table_to_string(table.get(), &text);
  const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
  return WithoutTrailingBlanks(text == nullptr ? "" : text);
}

std::string Paint(const Word& word, bool colors) {
  const char* escape = colors ? Escape(word.color) : nullptr;
  return escape == nullptr ? word.text : absl::StrCat(escape, word.text, "\033[0m");
}

}  // namespace berth
