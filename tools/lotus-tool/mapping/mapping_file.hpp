// The file that a mapping is kept in.
#ifndef LOTUS_TOOL_MAPPING_MAPPING_FILE_HPP
#define LOTUS_TOOL_MAPPING_MAPPING_FILE_HPP

#include <string>

#include "base/files/output_file.hpp"
#include "mapping/mapping.hpp"

namespace lotus::tool {

/// The original's keys op_to_func and common_funcs_to_op, and "functions": per operation and
/// function hits, runs, samples, share. Throws input_error when the output cannot be written.
void write_mapping(const mapping& m, output_file& out);

/// Reads a mapping, ours or the original's. Throws input_error.
mapping read_mapping(const std::string& path);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_MAPPING_MAPPING_FILE_HPP
