# Writes a C++ source file that defines the contents of another file as an array of bytes. Usage:
#   cmake -DINPUT=file -DOUTPUT=file.cpp -DNAME=identifier -DHEADER=its/declaration.hpp -P embed.cmake
file(READ "${INPUT}" hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE "${OUTPUT}.new"
"#include \"${HEADER}\"

namespace lotus::tool {
namespace {
const unsigned char ${NAME}_bytes[] = {${bytes}0x00};
}
const std::string_view ${NAME}{reinterpret_cast<const char*>(${NAME}_bytes), sizeof ${NAME}_bytes - 1};
}  // namespace lotus::tool
")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
