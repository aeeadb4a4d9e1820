# Adds two kinds to copies of the headers that the recipe in include/README.md names: batch_dropped,
# a kind of batch record, and gauge, whose lines are in the side log.
# cmake -DSOURCE=<checkout> -DTO=<folder> [-DCODE=<of batch_dropped>] [-DWITHOUT=row|batch_row]
#       [-DCOMPILER=<compiler> -DCHECK=<header>] -P add_kinds.cmake
# CHECK: a header that must still compile.
cmake_minimum_required(VERSION 3.21)
if(NOT DEFINED CODE)
  set(CODE 7)
endif()

# patch(FILE COPY BEFORE TEXT): inserts the text before another text, which must occur once in the
# file.
function(patch file copy before text)
  file(READ "${SOURCE}/${file}" content)
  string(FIND "${content}" "${before}" at)
  string(FIND "${content}" "${before}" last REVERSE)
  if(at EQUAL -1 OR NOT at EQUAL last)
    message(FATAL_ERROR "${file}: not once in it, as add_kinds.cmake expects:\n${before}")
  endif()
  string(REPLACE "${before}" "${text}${before}" content "${content}")
  file(WRITE "${TO}/${copy}" "${content}")
endfunction()

patch(include/lotus/record/record.hpp lotus/record/record.hpp
    "  none = 0,\n" "  batch_dropped = 250,\n  gauge = 251,\n")
set(rows "    case event_kind::batch_dropped:
      return {kind, main, alone, event, drawn::moment, ${CODE}, \"SBatchDropped_\", \"\", {batch}};
    case event_kind::gauge:
      return {kind, side, both, no_time, drawn::counter, by_name, \"\", \"gauge,\", {count, value}};
")
if(WITHOUT STREQUAL "row")
  set(rows "")
endif()
patch(include/lotus/format/record_kinds.hpp lotus/format/record_kinds.hpp
    "    case event_kind::none:\n" "${rows}")
if(NOT WITHOUT STREQUAL "batch_row")
  patch(tools/lotus-tool/log/batch_kinds.hpp log/batch_kinds.hpp
      "};\n\ninline constexpr std::size_t record_kinds"
      "    internal::drawn_as(record_kind::dropped, internal::event_kind::batch_dropped, \"\", '_', false,
                     arrow_end::none, -1),\n")
  file(READ "${TO}/log/batch_kinds.hpp" content)
  string(REPLACE "consumed, queued }" "consumed, queued, dropped }" content "${content}")
  file(WRITE "${TO}/log/batch_kinds.hpp" "${content}")
endif()

if(CHECK)
  file(WRITE "${TO}/check.cpp" "#include \"${CHECK}\"\n")
  execute_process(COMMAND "${COMPILER}" -std=c++17 -fsyntax-only -I "${TO}"
      -I "${SOURCE}/include" -I "${SOURCE}/tools/lotus-tool" "${TO}/check.cpp"
      COMMAND_ERROR_IS_FATAL ANY)
endif()
