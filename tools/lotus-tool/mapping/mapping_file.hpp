// Writes and reads the file that stores a mapping.
#ifndef LOTUS_TOOL_MAPPING_MAPPING_FILE_HPP
#define LOTUS_TOOL_MAPPING_MAPPING_FILE_HPP

#include <string>

#include "base/files/output_file.hpp"
#include "describe/described.hpp"
#include "mapping/mapping.hpp"

namespace lotus::tool {

/// The members of a mapping in JSON.
const description<mapping>& description_of(const mapping*);

/// Writes a mapping with the original Lotus's keys op_to_func and common_funcs_to_op, and the key
/// "functions" with hits, runs, samples and share for each operation and function. Throws
/// input_error if the output cannot be written.
void write_mapping(const mapping& m, output_file& out);

/// Reads a mapping written by this tool or by the original Lotus. Throws input_error.
mapping read_mapping(const std::string& path);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_MAPPING_FILE_HPP
