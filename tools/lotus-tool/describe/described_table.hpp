// Prints tables whose columns are described fields.
#ifndef LOTUS_TOOL_DESCRIBE_DESCRIBED_TABLE_HPP
#define LOTUS_TOOL_DESCRIBE_DESCRIBED_TABLE_HPP

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/terminal/table.hpp"
#include "describe/description.hpp"

namespace lotus::tool {

/// Returns the fields with a title that one of the `outputs` contains.
std::vector<const field*> columns_of(const object_description& of, unsigned outputs = ~0U);
/// Returns the head of a column; if empty, it is the column's title.
using head_function = std::function<std::string(const field&)>;
/// Returns a table that has only its heads.
/// @param head  the head of the first column, for the names of the rows.
/// @param more  heads of columns that only this table has, before those of `columns`.
table table_with(const std::string& head, const std::vector<const field*>& columns,
                 const std::vector<std::string>& more = {}, table_form form = table_form::columns,
                 const head_function& head_of = {});
/// Returns the cells of a row.
/// @param of  an object of the described type.
/// @param more  the cells of the columns that only this table has.
std::vector<std::string> row_of(std::string name, const void* of,
                                const std::vector<const field*>& columns,
                                const std::vector<std::string>& more = {});

/// The name of a row, and its object.
using named_row = std::pair<std::string, const void*>;
/// @param name_of  returns the name of a row, which is its first cell.
template <class T, class NameOf>
std::vector<named_row> named_rows(const std::vector<T>& rows, const NameOf& name_of) {
  std::vector<named_row> named;
  named.reserve(rows.size());
  for (const T& row : rows) named.emplace_back(name_of(row), &row);
  return named;
}
/// Returns those of columns_of() that one of the rows has.
std::vector<const field*> columns_in(const std::vector<named_row>& rows,
                                     const object_description& of, unsigned outputs);
void print_named_rows(const std::string& head, const std::vector<named_row>& rows,
                      const object_description& of, std::ostream& out, unsigned outputs,
                      const head_function& head_of = {});

/// Prints a table with a row for each of `rows`, without columns that no row has.
/// @param name_of  as in named_rows().
template <class T, class NameOf>
void print_rows(const std::string& head, const std::vector<T>& rows, const description<T>& of,
                const NameOf& name_of, std::ostream& out, unsigned outputs = ~0U) {
  print_named_rows(head, named_rows(rows, name_of), of, out, outputs);
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_DESCRIBE_DESCRIBED_TABLE_HPP
