# What `cmake --install` installs. The whole can be moved: programs find their parts by paths from their
# own place (sim/cli/torch/installation.h).
#
#   bin/onerank
#   lib/onerank/                   onerank-rank, exec/, virtual_gpu/ (installed by its own folder), built_with.json
#   share/onerank/sources/         what `onerank exec` builds for a torch that Onerank was not built for
#   share/onerank/plans/           examples
#   share/man/, ...                manual page and completions
#   include/onerank/, lib/cmake/   the estimator, for find_package(onerank) (component development)
option(ONERANK_BUNDLE "Install the libraries of fmt and yaml-cpp too, for a machine that has none" OFF)

set(sources "${PROJECT_SOURCE_DIR}")
set(plans "${PROJECT_SOURCE_DIR}/scripts/plans")
configure_file(scripts/cmake/built_with.json.in built_with.json @ONLY)
if(ONERANK_SANITIZE)
  return()
endif()
set(sources "../../share/onerank/sources")
set(plans "../../share/onerank/plans")
configure_file(scripts/cmake/built_with.json.in installed/built_with.json @ONLY)

set(parts lib/onerank)
install(FILES "${PROJECT_BINARY_DIR}/installed/built_with.json" DESTINATION ${parts})
install(TARGETS onerank RUNTIME DESTINATION bin)
install(DIRECTORY scripts/plans DESTINATION share/onerank)
if(TARGET onerank-rank)
  install(TARGETS onerank-rank RUNTIME DESTINATION ${parts})
endif()
if(TARGET onerank_exec_recorder)
  install(TARGETS onerank_exec_hooks onerank_exec_recorder LIBRARY DESTINATION ${parts}/exec)
  install(FILES sim/exec/launch.py sim/exec/observe.py DESTINATION ${parts}/exec)
  install(DIRECTORY sim/exec/observer DESTINATION ${parts}/exec FILES_MATCHING PATTERN "*.py")
  install(FILES CMakeLists.txt CMakePresets.json DESTINATION share/onerank/sources)
  install(DIRECTORY estimator comm_stub DESTINATION share/onerank/sources)
  install(DIRECTORY scripts/cmake DESTINATION share/onerank/sources/scripts)
  install(DIRECTORY sim/exec sim/tracking sim/virtual_gpu DESTINATION share/onerank/sources/sim)
endif()

if(ONERANK_BUNDLE)
  find_package(yaml-cpp REQUIRED)  # its target is known in sim/cli alone
  install(IMPORTED_RUNTIME_ARTIFACTS fmt::fmt yaml-cpp LIBRARY DESTINATION ${parts})
  foreach(target_rpath IN ITEMS "onerank:/../${parts}" "onerank-rank:" "onerank_exec_recorder:/..")
    string(REPLACE ":" ";" target_rpath "${target_rpath}")
    list(POP_FRONT target_rpath target)
    if(TARGET ${target})
      set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN${target_rpath}")
    endif()
  endforeach()
endif()

# onerank_install_text(FILE ARGUMENT...): what `onerank ARGUMENT...` writes, as FILE.
function(onerank_install_text file)
  set(output "${PROJECT_BINARY_DIR}/installed/${file}")
  get_filename_component(folder "${output}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(OUTPUT "${output}" COMMAND onerank ${ARGN} > "${output}" DEPENDS onerank VERBATIM)
  string(REPLACE ";" "_" name "onerank_text_${ARGN}")
  add_custom_target(${name} ALL DEPENDS "${output}")
  get_filename_component(folder "${file}" DIRECTORY)
  install(FILES "${output}" DESTINATION "${folder}")
endfunction()
onerank_install_text(share/man/man1/onerank.1 man)
onerank_install_text(share/bash-completion/completions/onerank completion bash)
onerank_install_text(share/zsh/site-functions/_onerank completion zsh)
onerank_install_text(share/fish/vendor_completions.d/onerank.fish completion fish)

include(CMakePackageConfigHelpers)
set(package lib/cmake/onerank)
set_target_properties(onerank_estimator PROPERTIES EXPORT_NAME estimator)
install(TARGETS onerank_estimator EXPORT onerank ARCHIVE DESTINATION lib COMPONENT development)
install(DIRECTORY estimator DESTINATION include/onerank COMPONENT development FILES_MATCHING PATTERN "*.h")
install(EXPORT onerank FILE onerankTargets.cmake NAMESPACE onerank:: DESTINATION ${package} COMPONENT development)
configure_package_config_file(scripts/cmake/onerankConfig.cmake.in onerankConfig.cmake
  INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/onerankConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/onerankConfig.cmake" "${PROJECT_BINARY_DIR}/onerankConfigVersion.cmake"
  DESTINATION ${package} COMPONENT development)
