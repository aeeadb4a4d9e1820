# Defines the target lotus_docs, which builds the API reference (docs/html/index.html in the build
# folder). Doxygen creates it from the headers with public names: those directly in include/lotus,
# and those of the libtorch adapter. A public name without documentation is an error.
find_package(Doxygen QUIET)
if(NOT Doxygen_FOUND)
  lotus_left_out("API reference" "Doxygen (Debian: doxygen)")
  return()
endif()

set(DOXYGEN_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/docs")
set(DOXYGEN_STRIP_FROM_PATH "${PROJECT_SOURCE_DIR}/include")
set(DOXYGEN_STRIP_FROM_INC_PATH "${PROJECT_SOURCE_DIR}/include")
set(DOXYGEN_GENERATE_LATEX NO)
set(DOXYGEN_HAVE_DOT NO)
set(DOXYGEN_QUIET YES)
set(DOXYGEN_JAVADOC_AUTOBRIEF YES)
set(DOXYGEN_AUTOLINK_SUPPORT NO)
# Turn the first comment of each header into the documentation of the file. Without it, Doxygen
# would silently leave out the macros of the header.
set(DOXYGEN_INPUT_FILTER "sed -e '1s|^// |/*! \\\\file */ // |'")
set(DOXYGEN_EXCLUDE_SYMBOLS detail *::detail *::detail::* LOTUS_DETAIL_* LOTUS_*_HPP)
set(DOXYGEN_MACRO_EXPANSION YES)
set(DOXYGEN_EXPAND_ONLY_PREDEF YES)
set(DOXYGEN_PREDEFINED __linux__ __x86_64__
    "LOTUS_DETAIL_NAMESPACE_BEGIN=namespace lotus {" "LOTUS_DETAIL_NAMESPACE_END=}"
    LOTUS_DETAIL_ALWAYS_INLINE=inline LOTUS_DETAIL_COLD= LOTUS_DETAIL_PER_MODULE=)
set(DOXYGEN_WARN_IF_UNDOCUMENTED YES)
set(DOXYGEN_WARN_IF_INCOMPLETE_DOC NO)
set(DOXYGEN_WARN_AS_ERROR FAIL_ON_WARNINGS)

file(GLOB documented CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/include/lotus/*.hpp" "${PROJECT_SOURCE_DIR}/include/lotus/torch/*.hpp")
# Leave out unsupported.hpp: it defines the names of the other headers again, for platforms on which
# nothing is recorded.
list(FILTER documented EXCLUDE REGEX "/unsupported\\.hpp$")
doxygen_add_docs(lotus_docs ${documented} "${PROJECT_SOURCE_DIR}/tools/cmake/docs.dox")
if(LOTUS_BUILD_TESTS)
  enable_testing()
  add_test(NAME docs COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target lotus_docs)
  set_tests_properties(docs PROPERTIES LABELS lint TIMEOUT 120)
endif()
