// The one place the version is written; CMake reads these three lines, so no other digits in them.
#ifndef LOTUS_VERSION_HPP
#define LOTUS_VERSION_HPP

#define LOTUS_VERSION_MAJOR 0  ///< changes when users must change their code
#define LOTUS_VERSION_MINOR 1  ///< as the major one, as long as that is zero
#define LOTUS_VERSION_PATCH 0  ///< changes when only mistakes were mended

#endif  // LOTUS_VERSION_HPP
