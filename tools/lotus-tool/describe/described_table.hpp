// Prints tables whose columns are described fields.
#ifndef LOTUS_TOOL_DESCRIBE_DESCRIBED_TABLE_HPP
#define LOTUS_TOOL_DESCRIBE_DESCRIBED_TABLE_HPP

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/terminal/table.hpp"
#include "describe/description.hpp"

namespace lotus::tool {

/// Returns the fields with a title that one of the `outputs` contains.
template <class T>
std::vector<const field<T>*> columns_of(const description<T>& of, unsigned outputs = ~0U) {
  std::vector<const field<T>*> columns;
  for (const field<T>& one : of.fields()) {
    if (!one.shown.title.empty() && (one.outputs & outputs) != 0) columns.push_back(&one);
  }
  return columns;
}

/// Returns a table that has only its heads.
/// @param head  the head of the first column, for the names of the rows.
template <class T>
table table_with(const std::string& head, const std::vector<const field<T>*>& columns) {
  table of;
  std::vector<std::string> heads{head};
  std::vector<std::pair<unsigned, std::string>> dropped;
  for (const field<T>* one : columns) {
    heads.emplace_back(one->shown.title);
    if (one->shown.dropped > 0) dropped.emplace_back(one->shown.dropped, one->shown.title);
  }
  std::sort(dropped.begin(), dropped.end());
  std::vector<std::string> spared;
  spared.reserve(dropped.size());
  for (auto& [rank, title] : dropped) spared.push_back(std::move(title));
  of.row(std::move(heads));
  of.spare(std::move(spared));
  return of;
}

/// Returns the cells of a row.
template <class T>
std::vector<std::string> row_of(std::string name, const T& of,
                                const std::vector<const field<T>*>& columns) {
  std::vector<std::string> cells{std::move(name)};
  cells.reserve(columns.size() + 1);
  for (const field<T>* one : columns) cells.push_back(human_text(one->shown, one->value(of)));
  return cells;
}

/// Prints a table with a row for each of `rows`, without columns that no row has.
/// @param name_of  returns the name of a row, which is its first cell.
template <class T, class NameOf>
void print_rows(const std::string& head, const std::vector<T>& rows, const description<T>& of,
                const NameOf& name_of, std::ostream& out, unsigned outputs = ~0U) {
  std::vector<const field<T>*> columns;
  for (const field<T>* one : columns_of(of, outputs)) {
    const auto has = [one](const T& row) { return !one->has || one->has(row); };
    if (std::any_of(rows.begin(), rows.end(), has)) columns.push_back(one);
  }
  table lines = table_with(head, columns);
  for (const T& row : rows) lines.row(row_of(std::string(name_of(row)), row, columns));
  lines.print(out);
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_DESCRIBE_DESCRIBED_TABLE_HPP
