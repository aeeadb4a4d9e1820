# Checks that the modules are as their README files describe them: dependencies go in one direction
# only, and no folder contains too many files.
# cmake -DSOURCE=<checkout> -P modules.cmake
cmake_minimum_required(VERSION 3.21)
set(faults "")

macro(fault text)
  list(APPEND faults "${text}")
endmacro()

# For each module of the library, the modules whose headers it may include. "words" are the two
# headers of the API that contain no code, and "api" all other headers of the API. Together with
# "record", these are the front end. The front end must not include the engine; only lotus.hpp does
# so, at its end. Each of aggregates, heap, sampling and waits is one optional feature. In
# aggregates, "calls" is the part that scopes need. In record, "thread" is the session's data about
# a thread, including its aggregates. If a feature adds code to another module, the code is in a
# folder of the feature with that module's name, and counts as a part of that module.
set(words config.hpp version.hpp)
set(sees_words words)
set(sees_base words base)
set(sees_options words base)
set(sees_record words base options record)
set(sees_calls words base options record calls)
set(sees_thread words base options record calls thread)
set(sees_heap words base options record folder format calls thread heap)
set(sees_folder words base options record folder)
set(sees_sampling words base options record folder sampling)
set(sees_format words base options record folder format)
set(sees_aggregates words base options record calls thread folder format aggregates)
set(sees_recovery words base options record folder format aggregates recovery)
set(sees_waits words base options record folder waits)
set(sees_store words base options record calls thread folder format aggregates recovery waits store)
set(sees_collectors words base options record calls thread folder sampling collectors)
set(sees_session words base options record calls thread heap folder format aggregates recovery waits store
    collectors session)
set(sees_api words base options record calls api)
set(sees_engine words base options record calls thread heap folder format sampling aggregates recovery
    store collectors session api engine)
set(sees_whole words options api engine)
set(sees_torch words base options record calls api torch whole)

# The headers of the library that the tool may include: formats of files, and operations on run
# folders.
set(tool_sees "^lotus/(folder|format|recovery)/"
    "^lotus/aggregates/[^/]+$"
    "^lotus/heap/heap_hook.hpp" "^lotus/waits/(futex_waits|system_calls|wait_reasons).hpp" "^lotus/sampling/(perf_ring|sample_layout).hpp"
    "^lotus/base/(build_id|cpu_limits|environment).hpp")

# module_of(HEADER VARIABLE): sets VARIABLE to the module of a header, which is given as in
# "lotus/base/clock.hpp".
function(module_of header variable)
  set(module api)
  if(header MATCHES "^lotus/([^/]+)/")
    set(module "${CMAKE_MATCH_1}")
    if(header MATCHES "^lotus/(aggregates|heap|sampling|waits)/([^/]+)/")
      set(module "${CMAKE_MATCH_2}")
    elseif(header MATCHES "^lotus/aggregates/(aggregates|aggregate_calls)\\.hpp$")
      set(module calls)
    elseif(header MATCHES "^lotus/record/(thread|rare_calls)\\.hpp$")
      set(module thread)
    endif()
  elseif(header MATCHES "^lotus/(torch|options)\\.hpp$")
    set(module "${CMAKE_MATCH_1}")
  elseif(header STREQUAL "lotus/lotus.hpp")
    set(module whole)
  else()
    get_filename_component(name "${header}" NAME)
    if(name IN_LIST words)
      set(module words)
    endif()
  endif()
  set(${variable} "${module}" PARENT_SCOPE)
endfunction()

# includes_of(FILE VARIABLE): sets VARIABLE to the names of all included files, in order.
function(includes_of file variable)
  file(STRINGS "${file}" lines REGEX "^ *#include [<\"]")
  list(TRANSFORM lines REPLACE "^ *#include [<\"]([^>\"]*)[>\"].*" "\\1")
  set(${variable} "${lines}" PARENT_SCOPE)
endfunction()

# In the library, no header may include a header of a higher module.
file(GLOB_RECURSE headers RELATIVE "${SOURCE}/include" "${SOURCE}/include/*.hpp")
foreach(header IN LISTS headers)
  module_of("${header}" module)
  includes_of("${SOURCE}/include/${header}" included)
  if(NOT DEFINED sees_${module})
    fault("${header}: modules.cmake does not know the module ${module}")
    continue()
  endif()
  foreach(other IN LISTS included)
    if(NOT other MATCHES "^lotus/")
      continue()
    endif()
    module_of("${other}" other_module)
    if(NOT other_module IN_LIST sees_${module})
      fault("${header} includes ${other}, but ${module} must not see ${other_module}")
    endif()
  endforeach()
endforeach()

# To keep the hot path fast to compile, the headers that scope.hpp includes, directly or indirectly,
# may include only these system headers.
set(hot_includes atomic cstddef cstdint new string_view type_traits utility)
set(reached lotus/scope.hpp)
set(todo lotus/scope.hpp)
while(todo)
  list(POP_FRONT todo header)
  includes_of("${SOURCE}/include/${header}" included)
  foreach(other IN LISTS included)
    if(other MATCHES "^lotus/" AND NOT other IN_LIST reached)
      list(APPEND reached "${other}")
      list(APPEND todo "${other}")
    elseif(NOT other MATCHES "^lotus/" AND NOT other IN_LIST hot_includes)
      fault("${header} includes <${other}>, and scope.hpp reaches it")
    endif()
  endforeach()
endwhile()
list(LENGTH reached count)
if(count GREATER 12)
  fault("lotus/scope.hpp reaches ${count} headers, at most 12 are wanted: ${reached}")
endif()

# The tool may include only some headers of the library. Its own modules are separated by include
# paths, which only a path with ".." could circumvent.
file(GLOB_RECURSE sources RELATIVE "${SOURCE}"
     "${SOURCE}/include/*.hpp" "${SOURCE}/tools/*.?pp" "${SOURCE}/tests/*.?pp"
     "${SOURCE}/bench/*.?pp" "${SOURCE}/examples/*.?pp")
list(JOIN tool_sees "|" tool_sees)
foreach(source IN LISTS sources)
  includes_of("${SOURCE}/${source}" included)
  foreach(other IN LISTS included)
    if(source MATCHES "^tools/" AND other MATCHES "^lotus/" AND NOT other MATCHES "${tool_sees}")
      fault("${source} includes ${other}, which the tool must not see")
    endif()
    if(source MATCHES "^(include|tools)/" AND other MATCHES "^\\.\\./")
      fault("${source} includes ${other}, past its module's include path")
    endif()
    # A command is a folder in commands/, or the files there whose names begin with the command.
    # Commands must not include each other.
    if(source MATCHES "^tools/lotus-tool/commands/([^/_.]+)")
      set(command "${CMAKE_MATCH_1}")
      if(other MATCHES "^commands/([^/_.]+)")
        set(other_command "${CMAKE_MATCH_1}")
        if(NOT other_command STREQUAL command)
          fault("${source} includes ${other}, but ${command} must not see the command ${other_command}")
        endif()
      endif()
    endif()
  endforeach()
endforeach()

# A member function must be defined in the same file as its class. The exceptions are classes of the
# front end whose functions belong to the engine.
list(FILTER headers EXCLUDE REGEX "^lotus/engine/")
set(member "^[a-z][a-z_:0-9<>*& ]*[ *&]([a-z_]+)::~?[a-z_]+\\(")
foreach(header IN LISTS headers)
  file(STRINGS "${SOURCE}/include/${header}" members REGEX "${member}")
  foreach(line IN LISTS members)
    string(REGEX REPLACE "${member}.*" "\\1" class "${line}")
    file(STRINGS "${SOURCE}/include/${header}" own
         REGEX "^ *(class|struct) (.* )?${class}( final)?( :.*)? {")
    if(NOT own)
      fault("${header} defines a member function of ${class}, whose class is elsewhere")
    endif()
  endforeach()
endforeach()

# All headers must have different names, because an include might otherwise find the wrong one.
set(names "")
foreach(source IN LISTS sources)
  if(source MATCHES "^(include|tools)/.*\\.hpp$")
    get_filename_component(name "${source}" NAME)
    if(name IN_LIST names)
      fault("${source}: another header is called ${name}")
    endif()
    list(APPEND names "${name}")
  endif()
endforeach()

# No folder may contain too many files, and no file too many lines.
file(GLOB_RECURSE all RELATIVE "${SOURCE}"
     "${SOURCE}/include/*" "${SOURCE}/tools/*" "${SOURCE}/tests/*" "${SOURCE}/bench/*"
     "${SOURCE}/examples/*")
list(FILTER all EXCLUDE REGEX "/(traces|corpus|__pycache__)/")
foreach(file IN LISTS all)
  get_filename_component(folder "${file}" DIRECTORY)
  string(MAKE_C_IDENTIFIER "${folder}" key)
  math(EXPR files_${key} "0${files_${key}} + 1")
  set(folder_${key} "${folder}")
  list(APPEND keys ${key})
  if(file MATCHES "\\.(hpp|cpp|h|js|css|html|sh|py|cmake)$|CMakeLists.txt$")
    file(READ "${SOURCE}/${file}" text)
    string(REGEX MATCHALL "\n" ends "${text}")
    list(LENGTH ends lines)
    if(lines GREATER 500)
      fault("${file}: ${lines} lines, at most 500 are wanted")
    endif()
  endif()
endforeach()
list(REMOVE_DUPLICATES keys)
foreach(key IN LISTS keys)
  if(files_${key} GREATER 25)
    fault("${folder_${key}}: ${files_${key}} files, at most 25 are wanted")
  endif()
endforeach()
file(GLOB on_top "${SOURCE}/include/lotus/*.hpp")
list(LENGTH on_top count)
if(count GREATER 17)
  fault("include/lotus: ${count} headers on top, at most 17 are wanted")
endif()
file(GLOB loose LIST_DIRECTORIES false "${SOURCE}/tools/lotus-tool/*")
list(LENGTH loose count)
if(count GREATER 2)
  fault("tools/lotus-tool: ${count} loose files, at most 2 are wanted")
endif()

if(faults)
  list(JOIN faults "\n  " text)
  message(FATAL_ERROR "the modules do not hold what they promise:\n  ${text}")
endif()
