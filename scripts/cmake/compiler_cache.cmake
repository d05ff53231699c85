# Compiles through ccache where it is installed. What takes precompiled headers is cached too, which ccache does only if
# it may leave their macros unchecked (pch_defines, time_macros) and GCC says which headers it takes. Paths inside the
# clone count as relative ones, so that a fresh clone takes what another one has compiled.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
    "${CCACHE_PROGRAM}")
  set(CMAKE_C_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
  file(RELATIVE_PATH root "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}")
  add_compile_options("-fmacro-prefix-map=${root}=")
endif()
