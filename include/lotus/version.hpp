// The only place that holds the version. CMake parses these three lines: keep other digits out of
// them.
#ifndef LOTUS_VERSION_HPP
#define LOTUS_VERSION_HPP

#define LOTUS_VERSION_MAJOR 0  ///< changes when users must change their code
#define LOTUS_VERSION_MINOR 1  ///< likewise, as long as the major version is zero
#define LOTUS_VERSION_PATCH 0  ///< changes when a release only fixes bugs

#endif  // LOTUS_VERSION_HPP
