# Checks one document. Its cpp blocks are compiled unchanged, without a warning, and run as
# ./program; its sh blocks are executed in between, all in one folder that looks like a checkout
# with a build in it. Every link must lead to a file and a heading, and every file named must exist.
# If a document uses the recordings `before` and `after` without creating them, it gets copies of
# those in RECORDINGS, so that one recording serves all documents. A block within an HTML comment is
# run as well: it prepares what the visible commands need, and readers do not see it.
# cmake -DSOURCE=... -DBUILD=... -DREADME=docs/concepts.md -DWORK=... -DCXX=... -DRECORDINGS=...
#       -DLIBRARY=build/liblotus.a -P readme.cmake
cmake_minimum_required(VERSION 3.21)

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
foreach(entry bench docs examples include single_include tests tools)
  file(CREATE_LINK "${SOURCE}/${entry}" "${WORK}/${entry}" SYMBOLIC)
endforeach()
file(CREATE_LINK "${BUILD}" "${WORK}/build" SYMBOLIC)
set(ENV{PATH} "${BUILD}/bin:$ENV{PATH}:${SOURCE}/build-engines/bin")
set(ENV{CXX} "${CXX}")

# Programs are linked with the compiled library if it exists, which takes a tenth of the time to
# compile.
set(flags "-std=c++17 -Wall -Wextra -Werror -O1 -I include")
if(LIBRARY)
  set(flags "${flags} -DLOTUS_COMPILED")
endif()

# Blocks of these languages are run, or only shown; any other language is an error.
set(languages_run cpp sh)
set(languages_shown c cmake console python text yaml "c++")

# Programs that a block may need and that may be missing: a pattern that finds them in a block, and
# a command that succeeds if they are installed. Without them the block is skipped with a message.
set(needs
    "lotus-tool map (run|record)" "lotus-tool map record -q --samples probed -- true"
    "lotus-tool report" "lotus-tool report --help"
    "--format parquet" "duckdb --version"
    "[|] jq " "jq --version"
    "--collector callgrind" "valgrind --version"
    "--collector perf|perf (record|stat)" "perf --version")

# run(COMMANDS STATUS OUTPUT): runs commands in the folder.
function(run commands status output)
  execute_process(COMMAND bash -euo pipefail -c "${commands}" WORKING_DIRECTORY "${WORK}"
      RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
  set(${status} "${result}" PARENT_SCOPE)
  set(${output} "${said}" PARENT_SCOPE)
endfunction()

# what_lacks(BLOCK VARIABLE): sets the reason why the block cannot be run here; empty if it can.
function(what_lacks block variable)
  set(${variable} "" PARENT_SCOPE)
  set(pairs ${needs})
  while(pairs)
    list(POP_FRONT pairs pattern probe)
    if(block MATCHES "${pattern}")
      run("${probe}" status output)
      if(NOT status EQUAL 0)
        set(${variable} "'${probe}' fails here" PARENT_SCOPE)
      endif()
    endif()
  endwhile()
  string(REGEX MATCHALL "build/(examples|bench)/[a-z0-9_]+" programs "${block}")
  foreach(program IN LISTS programs)
    get_filename_component(name "${program}" NAME)
    file(GLOB lists "${SOURCE}/bench/*.cmake" "${SOURCE}/bench/CMakeLists.txt")
    set(known OFF)
    foreach(list IN LISTS lists)
      file(READ "${list}" text)
      if(text MATCHES "add_executable\\(${name} ")
        set(known ON)
      endif()
    endforeach()
    if(NOT known AND NOT EXISTS "${SOURCE}/examples/${name}.cpp")
      message(FATAL_ERROR "${README}: no program is called ${program}")
    elseif(NOT EXISTS "${WORK}/${program}")
      set(${variable} "${program} is not built" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Commands that would take minutes or install packages are not run, but the files that they name
# must exist.
function(check_console block)
  string(REGEX MATCHALL "(tools|bench)/[a-z_]+\\.sh" scripts "${block}")
  foreach(script IN LISTS scripts)
    if(NOT EXISTS "${SOURCE}/${script}")
      message(FATAL_ERROR "${README}: no script is called ${script}")
    endif()
  endforeach()
  string(REGEX MATCHALL "--target [a-z_-]+" targets "${block}")
  foreach(target IN LISTS targets)
    string(REPLACE "--target " "" target "${target}")
    execute_process(COMMAND "${CMAKE_COMMAND}" --build "${BUILD}" --target help
        OUTPUT_VARIABLE known)
    if(NOT known MATCHES "(^|[\n ])${target}(:|[\n ])")
      message(FATAL_ERROR "${README}: no target is called ${target}")
    endif()
  endforeach()
  string(REGEX MATCHALL "--preset [a-z-]+" presets "${block}")
  file(READ "${SOURCE}/CMakePresets.json" known)
  foreach(preset IN LISTS presets)
    string(REPLACE "--preset " "" preset "${preset}")
    if(NOT known MATCHES "\"name\": \"${preset}\"")
      message(FATAL_ERROR "${README}: no preset is called ${preset}")
    endif()
  endforeach()
endfunction()

file(READ "${SOURCE}/${README}" lines)

if(RECORDINGS AND NOT lines MATCHES "--dir before")
  foreach(recording before after)
    if(lines MATCHES "(lotus-tool|cp -r)[^\n]* ${recording}")
      file(COPY "${RECORDINGS}/${recording}" DESTINATION "${WORK}")
    endif()
  endforeach()
endif()

set(rest "\n${lines}")
set(prose "")
set(blocks 0)
set(left_out 0)
while(rest MATCHES "\n```([^\n]*)\n")
  set(language "${CMAKE_MATCH_1}")
  string(FIND "${rest}" "\n```" begin)
  string(SUBSTRING "${rest}" 0 ${begin} part)
  string(APPEND prose "${part}\n")
  string(LENGTH "\n```${language}\n" skip)
  math(EXPR begin "${begin} + ${skip}")
  string(SUBSTRING "${rest}" ${begin} -1 rest)
  string(FIND "${rest}" "\n```" end)
  string(SUBSTRING "${rest}" 0 ${end} block)
  math(EXPR end "${end} + 4")
  string(SUBSTRING "${rest}" ${end} -1 rest)

  if(language IN_LIST languages_shown)
    if(language STREQUAL "console")
      check_console("${block}")
    elseif(language STREQUAL "python")
      file(WRITE "${WORK}/block.py" "${block}\n")
      run("python3 -m py_compile block.py" status output)
      if(NOT status EQUAL 0)
        message(FATAL_ERROR "${README}: this is not Python:\n${block}\n${output}")
      endif()
    endif()
    continue()
  elseif(NOT language IN_LIST languages_run)
    message(FATAL_ERROR "${README}: what is a block of '${language}'?\n${block}")
  endif()
  math(EXPR blocks "${blocks} + 1")
  set(commands "${block}")
  if(language STREQUAL "cpp")
    file(WRITE "${WORK}/program.cpp" "${block}\n")
    set(commands "${CXX} ${flags} program.cpp ${LIBRARY} -o program -pthread -ldl && ./program")
  endif()
  what_lacks("${commands}" lacking)
  if(lacking)
    message(STATUS "block ${blocks} (${language}): left out, ${lacking}")
    math(EXPR left_out "${left_out} + 1")
    continue()
  endif()
  string(TIMESTAMP before "%s")
  run("${commands}" status output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${README}: block ${blocks} ended with ${status}:\n${commands}\n${output}")
  endif()
  string(TIMESTAMP after "%s")
  math(EXPR seconds "${after} - ${before}")
  message(STATUS "block ${blocks} (${language}): fine, ${seconds} s")
endwhile()
# The prose, without characters that CMake treats specially in lists.
string(APPEND prose "${rest}")
string(REPLACE ";" " " prose "${prose}")
get_filename_component(folder "${SOURCE}/${README}" DIRECTORY)

string(REGEX MATCHALL "\\]\\([^)\n]+\\)" links "${prose}")
string(REPLACE "[" "(" links "${links}")
string(REPLACE "]" "" links "${links}")
string(REGEX MATCHALL "src(set)?=\"[^\"]+" pictures "${prose}")
list(TRANSFORM pictures REPLACE "^[a-z]+=.(.*)" "(\\1)")
list(APPEND links ${pictures})
foreach(link IN LISTS links)
  string(REGEX MATCH "^\\(([^)#]*)#?([^)]*)" link "${link}")
  set(file "${CMAKE_MATCH_1}")
  set(anchor "${CMAKE_MATCH_2}")
  set(path "${folder}/${file}")
  if(file MATCHES "^https?:|^[.][.]/[.][.]/actions/")  # the latter: pages of GitHub about this repository
    continue()
  elseif(file STREQUAL "")
    set(path "${SOURCE}/${README}")
  endif()
  if(NOT EXISTS "${path}")
    message(FATAL_ERROR "${README} links to ${file}, which is not there")
  elseif(NOT anchor STREQUAL "")
    # Converts headings to anchors as web pages do.
    file(STRINGS "${path}" headings REGEX "^#+ ")
    string(TOLOWER "${headings}" headings)
    string(REGEX REPLACE "[^a-z0-9 #;_-]" "" headings "${headings}")
    list(TRANSFORM headings REPLACE "^#+ " "")
    list(TRANSFORM headings REPLACE " " "-")
    if(NOT anchor IN_LIST headings)
      message(FATAL_ERROR "${README} links to the heading ${anchor}, which is not there")
    endif()
  endif()
endforeach()

# A name such as `stats/stats.cpp` is searched in the document's folder, in the modules of the
# library and of the tool, and in the top folder. Names in capitals are placeholders.
string(REGEX MATCHALL "`[a-z0-9_./-]+\\.(hpp|cpp|cmake|sh|js|txt|png)`" files "${prose}")
string(REPLACE "`" "" files "${files}")
foreach(file IN LISTS files)
  set(found OFF)
  foreach(place "${folder}" "${SOURCE}" "${SOURCE}/include/lotus" "${SOURCE}/tools/lotus-tool"
          "${SOURCE}/tools")
    if(EXISTS "${place}/${file}")
      set(found ON)
    endif()
  endforeach()
  if(NOT found)
    message(FATAL_ERROR "${README} speaks of ${file}, which is not there")
  endif()
endforeach()

if(blocks GREATER 0 AND left_out EQUAL blocks)
  message(STATUS "skipped: every block was left out")
endif()
