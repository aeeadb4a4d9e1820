# Configures, builds and runs one consumer project, then looks for its line in the log.
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
# What the shell of the developer sets must not reach the consumer.
foreach(variable CXXFLAGS CPPFLAGS LDFLAGS CPATH CMAKE_BUILD_TYPE)
  unset(ENV{${variable}})
endforeach()
set(ENV{PKG_CONFIG_PATH} "${PREFIX}/share/pkgconfig")
run("${CMAKE_COMMAND}" -S "${PROJECT}" -B "${BUILD}" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${PREFIX}"
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
    "-DLOTUS_VERSION=${VERSION}" "-DLOTUS_SOURCE_DIR=${LOTUS_SOURCE_DIR}"
    "-DFETCHCONTENT_SOURCE_DIR_LOTUS=${LOTUS_SOURCE_DIR}")
run("${CMAKE_COMMAND}" --build "${BUILD}")
run("${BUILD}/consumer" "${BUILD}/run/log")

file(GLOB logs "${BUILD}/run/log_*_pid_*")
foreach(log IN LISTS logs)
  file(STRINGS "${log}" lines REGEX "^SConsumer,[0-9]+,[0-9]+$")
  list(LENGTH lines count)
  if(count EQUAL 1)
    return()
  endif()
endforeach()
message(FATAL_ERROR "no line of the scope in the logs: ${logs}")
