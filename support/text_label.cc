#include "support/text_label.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace berth {
namespace {

constexpr size_t kLabelBytes = 63;
constexpr char kEncoded[] = "e.";

bool IsLetterOrDigit(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

bool IsPlainLabel(const std::string& text) {
  return !text.empty() && text.size() <= kLabelBytes && IsLetterOrDigit(text.front()) &&
         IsLetterOrDigit(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return IsLetterOrDigit(c) || c == '-' || c == '_';
         });
}

std::string KeyOfPiece(const std::string& key, size_t piece) {
  return piece == 0 ? key : absl::StrCat(key, "-", piece);
}

std::vector<std::string> PiecesOf(const std::string& text) {
  std::vector<std::string> pieces;
  std::string piece = kEncoded;
  for (const char c : text) {
    const std::string token = IsLetterOrDigit(c)
                                  ? std::string(1, c)
                                  : absl::StrFormat(".%02x", static_cast<unsigned char>(c));
    if (piece.size() + token.size() > kLabelBytes) {
      pieces.push_back(std::move(piece));
      piece = kEncoded;
    }
    piece += token;
  }
  pieces.push_back(std::move(piece));
  return pieces;
}

std::string DecodePiece(absl::string_view piece) {
  std::string text;
  for (size_t i = 0; i < piece.size(); ++i) {
    if (piece[i] != '.' || i + 2 >= piece.size()) {
      text += piece[i];
      continue;
    }
    std::string byte;
    const absl::string_view digits = piece.substr(i + 1, 2);
    const bool hex = absl::ascii_isxdigit(static_cast<unsigned char>(digits[0])) &&
                     absl::ascii_isxdigit(static_cast<unsigned char>(digits[1]));
    text += hex ? absl::HexStringToBytes(digits) : std::string(piece.substr(i, 3));
    i += 2;
  }
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> TextLabels(const std::string& key,
                                                            const std::string& text) {
  if (text.empty()) return {};
  if (IsPlainLabel(text)) return {{key, text}};
  std::vector<std::pair<std::string, std::string>> labels;
  for (std::string& piece : PiecesOf(text)) {
    labels.emplace_back(KeyOfPiece(key, labels.size()), std::move(piece));
  }
  return labels;
}

std::string TextInLabels(const std::string& key,
                         absl::FunctionRef<const std::string*(const std::string& key)> find) {
  const std::string* first = find(key);
  if (first == nullptr) return "";
  if (!absl::StartsWith(*first, kEncoded)) return *first;
  std::string text;
  for (size_t i = 0;; ++i) {
    const std::string* piece = find(KeyOfPiece(key, i));
    if (piece == nullptr || !absl::StartsWith(*piece, kEncoded)) return text;
    text += DecodePiece(absl::string_view(*piece).substr(sizeof kEncoded - 1));
  }
}

}  // namespace berth
