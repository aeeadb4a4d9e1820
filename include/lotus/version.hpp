// Defines the version of the library. CMake parses the three lines below, so they must contain no
// other digits.
#ifndef LOTUS_VERSION_HPP
#define LOTUS_VERSION_HPP

#define LOTUS_VERSION_MAJOR 0  ///< increased when users must change their code
#define LOTUS_VERSION_MINOR 2  ///< likewise, as long as the major version is zero
#define LOTUS_VERSION_PATCH 0  ///< increased when a release only fixes bugs

#endif  // LOTUS_VERSION_HPP
