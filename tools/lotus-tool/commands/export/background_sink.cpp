#include "commands/export/background_sink.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "commands/export/row_sink.hpp"

namespace lotus::tool {
namespace {

// A block of this many rows fits into the L2 cache. Writing it takes much longer than waking the
// writer thread for it.
constexpr std::size_t block_rows = 512;
constexpr std::size_t usual_text_bytes = std::size_t{64} << 10U;

}  // namespace

background_sink::background_sink(std::unique_ptr<row_sink> sink)
    : sink_(std::move(sink)), writer_([this] { write_blocks(); }) {}

background_sink::~background_sink() {
  end();
}

void background_sink::row(std::size_t table, const std::vector<cell>& cells) {
  std::size_t text_bytes = 0;
  for (const cell& c : cells) {
    if (const auto* text = std::get_if<std::string_view>(&c)) text_bytes += text->size();
  }
  const bool full =
      filling_.used == block_rows || filling_.texts.size() + text_bytes > filling_.texts.capacity();
  if (full && filling_.used > 0) pass_on();
  if (filling_.used == 0) filling_.texts.reserve(std::max(text_bytes, usual_text_bytes));
  if (filling_.used == filling_.rows.size()) filling_.rows.emplace_back();
  table_row& to = filling_.rows[filling_.used++];
  to.table = table;
  to.cells = cells;
  for (cell& c : to.cells) {
    auto* const text = std::get_if<std::string_view>(&c);
    if (text == nullptr) continue;
    const std::size_t at = filling_.texts.size();
    filling_.texts.append(*text);
    *text = std::string_view(filling_.texts).substr(at);
  }
}

void background_sink::commit() {
  pass_on();
  end();
  blocks_.rethrow_failure();
  sink_->commit();
}

void background_sink::write_blocks() {
  try {
    while (const block* const full = blocks_.next()) {
      for (std::size_t i = 0; i < full->used; ++i) {
        sink_->row(full->rows[i].table, full->rows[i].cells);
      }
      blocks_.done();
    }
  } catch (...) {
    blocks_.fail(std::current_exception());
  }
}

void background_sink::pass_on() {
  filling_ = blocks_.push(std::move(filling_));
  filling_.used = 0;
  filling_.texts.clear();
}

void background_sink::end() {
  if (!writer_.joinable()) return;
  blocks_.close();
  writer_.join();
}

}  // namespace lotus::tool
