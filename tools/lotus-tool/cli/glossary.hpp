// The meanings of the labels in tables.
#ifndef LOTUS_TOOL_CLI_GLOSSARY_HPP
#define LOTUS_TOOL_CLI_GLOSSARY_HPP

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace lotus::tool {

/// A label's meaning in a few words; "" if `label` is a name from the user's program.
std::string_view meaning_of(std::string_view label);

/// Prints a line for each label that has a meaning.
void print_glossary(const std::vector<std::string>& labels, std::ostream& out);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_CLI_GLOSSARY_HPP
