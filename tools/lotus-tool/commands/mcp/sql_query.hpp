// Runs a read-only SQL query on a database file.
#ifndef LOTUS_TOOL_COMMANDS_MCP_SQL_QUERY_HPP
#define LOTUS_TOOL_COMMANDS_MCP_SQL_QUERY_HPP

#include <string>

namespace lotus::tool {

/// Runs one SELECT on an SQLite file and returns {"columns":[…],"rows":[[…]…],"truncated":false}.
/// At most 1,000 rows and about 200 kB are returned; beyond that, `truncated` is true. The query
/// cannot change the file or open another one, and is stopped after 10 s. Throws input_error with
/// the reason if the query is invalid.
std::string query_database(const std::string& path, const std::string& sql);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_COMMANDS_MCP_SQL_QUERY_HPP
