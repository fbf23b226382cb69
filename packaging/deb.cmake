# cpack's configuration of the Debian package: packaging/make.sh gives the version, the description and the tree.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gpumem)
set(CPACK_PACKAGE_FILE_NAME gpumem)
set(CPACK_PACKAGE_VENDOR gpumem)
set(CPACK_PACKAGE_CONTACT "gpumem developers <gpumem@localhost>")
set(CPACK_PACKAGE_DESCRIPTION "One C library for device, pinned, managed, virtual and mapped memory, and softgpu, \
a software CUDA driver for machines without a GPU. The command gpumem runs programs on either.")
set(CPACK_PACKAGING_INSTALL_PREFIX /)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# What the binaries need is asked of them, not written down.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
