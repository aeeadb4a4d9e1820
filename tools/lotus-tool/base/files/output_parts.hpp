// Lets several threads form one output at the same time.
#ifndef LOTUS_TOOL_BASE_FILES_OUTPUT_PARTS_HPP
#define LOTUS_TOOL_BASE_FILES_OUTPUT_PARTS_HPP

#include <cstddef>
#include <functional>

#include "base/files/output_buffer.hpp"
#include "base/files/output_file.hpp"

namespace lotus::tool {

/// Calls `form(number, part)` for each number below `count`, each on a thread of its own, one of
/// which is the caller's. Writes what each call has written to its part to `out`, in blocks: the
/// first block of each part, then the second of each, and so on; a part that has ended is left out.
/// So the output does not depend on how fast the threads are. Parts are divided only where
/// output_buffer::end_piece() was called. Returns false, without having called `form`, if that many
/// threads cannot be created. Rethrows what `form` throws; throws input_error if the output cannot
/// be written.
bool form_in_parts(output_file& out, std::size_t count,
                   const std::function<void(std::size_t, output_buffer&)>& form);

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_BASE_FILES_OUTPUT_PARTS_HPP
