#include "describe/described_table.hpp"

#include <algorithm>

namespace lotus::tool {

std::vector<const field*> columns_of(const object_description& of, unsigned outputs) {
  std::vector<const field*> columns;
  for (const field& one : of.fields()) {
    if (!one.shown.title.empty() && (one.outputs & outputs) != 0) columns.push_back(&one);
  }
  return columns;
}

table table_with(const std::string& head, const std::vector<const field*>& columns,
                 const std::vector<std::string>& more, table_form form,
                 const head_function& head_of) {
  table of(form);
  std::vector<std::string> heads{head};
  heads.insert(heads.end(), more.begin(), more.end());
  std::vector<std::pair<unsigned, std::string>> dropped;
  for (const field* one : columns) {
    heads.push_back(head_of ? head_of(*one) : std::string(one->shown.title));
    if (one->shown.dropped > 0) dropped.emplace_back(one->shown.dropped, heads.back());
  }
  std::sort(dropped.begin(), dropped.end());
  std::vector<std::string> spared;
  spared.reserve(dropped.size());
  for (auto& [rank, title] : dropped) spared.push_back(std::move(title));
  of.row(std::move(heads));
  of.spare(std::move(spared));
  return of;
}

std::vector<std::string> row_of(std::string name, const void* of,
                                const std::vector<const field*>& columns,
                                const std::vector<std::string>& more) {
  std::vector<std::string> cells{std::move(name)};
  cells.reserve(columns.size() + more.size() + 1);
  cells.insert(cells.end(), more.begin(), more.end());
  for (const field* one : columns) cells.push_back(human_text(one->shown, one->value(of)));
  return cells;
}

std::vector<const field*> columns_in(const std::vector<named_row>& rows,
                                     const object_description& of, unsigned outputs) {
  std::vector<const field*> columns;
  for (const field* one : columns_of(of, outputs)) {
    const auto has = [one](const named_row& row) { return one->has(row.second); };
    if (std::any_of(rows.begin(), rows.end(), has)) columns.push_back(one);
  }
  return columns;
}

void print_named_rows(const std::string& head, const std::vector<named_row>& rows,
                      const object_description& of, std::ostream& out, unsigned outputs,
                      const head_function& head_of) {
  const std::vector<const field*> columns = columns_in(rows, of, outputs);
  table lines = table_with(head, columns, {}, table_form::columns, head_of);
  for (const named_row& row : rows) lines.row(row_of(row.first, row.second, columns));
  lines.print(out);
}

}  // namespace lotus::tool
