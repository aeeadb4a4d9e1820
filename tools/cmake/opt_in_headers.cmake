# Headers that only the user includes, never lotus.hpp, because they depend on other libraries.
set(lotus_opt_in_headers "^lotus/torch[./]")
