// Explains the labels in the tool's tables.
#ifndef LOTUS_TOOL_CLI_GLOSSARY_HPP
#define LOTUS_TOOL_CLI_GLOSSARY_HPP

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// Returns the meaning of a label of a table in a few words; "" if the text is not a label of
/// lotus-tool but, for example, an operation's name.
std::string_view meaning_of(std::string_view label);

/// Prints each label with its meaning, as found by meaning_of(). Skips labels for which it returns
/// "".
void print_glossary(const std::vector<std::string>& labels, std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_GLOSSARY_HPP
