# Configures, builds and runs a consumer project, then checks that the log contains its lines.
#
# cmake -DPROJECT=dir -DBUILD=dir -DCOMPILER=c++ -DGENERATOR=name [-DPREFIX=installed lotus]
#       [-DVERSION=x.y.z] [-DLOTUS_SOURCE_DIR=checkout] -P consume.cmake
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result)
  if(result)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "failed (${result}): ${command}")
  endif()
endfunction()

file(REMOVE_RECURSE "${BUILD}")
# Variables in the developer's shell must not affect the consumer project.
foreach(variable CXXFLAGS CPPFLAGS LDFLAGS CPATH CMAKE_BUILD_TYPE)
  unset(ENV{${variable}})
endforeach()
file(GLOB pkgconfig "${PREFIX}/lib*/pkgconfig" "${PREFIX}/lib/*/pkgconfig")
set(ENV{PKG_CONFIG_PATH} "${pkgconfig}")
run("${CMAKE_COMMAND}" -S "${PROJECT}" -B "${BUILD}" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${PREFIX}"
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
    "-DLOTUS_VERSION=${VERSION}" "-DLOTUS_SOURCE_DIR=${LOTUS_SOURCE_DIR}"
    "-DFETCHCONTENT_SOURCE_DIR_LOTUS=${LOTUS_SOURCE_DIR}")
run("${CMAKE_COMMAND}" --build "${BUILD}")

foreach(kind compiled header_only mixed)
  run("${BUILD}/consumer_${kind}" "${BUILD}/run_${kind}/log")
  set(lines "")
  file(GLOB logs "${BUILD}/run_${kind}/log_*_pid_*")
  foreach(log IN LISTS logs)
    file(STRINGS "${log}" more REGEX "^S(Consumer|Second),[0-9]+,[0-9]+$")
    list(APPEND lines ${more})
  endforeach()
  list(LENGTH lines count)
  if(NOT count EQUAL 2)
    message(FATAL_ERROR "${kind}: not the lines of both scopes in the logs ${logs}: ${lines}")
  endif()
endforeach()

# The quick start records when it is told to.
run("${CMAKE_COMMAND}" -E env "LOTUS_LOG_FILE=${BUILD}/run_quick_start/log" "${BUILD}/consumer_quick_start" 4)
set(reads 0)
file(GLOB logs "${BUILD}/run_quick_start/log_*_pid_*")
foreach(log IN LISTS logs)
  file(STRINGS "${log}" lines REGEX "^SRead,")
  list(LENGTH lines more)
  math(EXPR reads "${reads} + ${more}")
endforeach()
if(NOT reads EQUAL 800)
  message(FATAL_ERROR "the quick start has ${reads} records of Read, not 800")
endif()
