################################################################################
#
# packfs
#
# make BR2_EXTERNAL=/path/to/packfs/integration/buildroot menuconfig
#
################################################################################

HOST_PACKFS_VERSION = 0.1.0
HOST_PACKFS_SOURCE = packfs-$(HOST_PACKFS_VERSION)-vendored.tar.gz
HOST_PACKFS_SITE = $(call qstrip,$(BR2_PACKAGE_PACKFS_SOURCE))
HOST_PACKFS_SITE_METHOD = file
HOST_PACKFS_LICENSE = Apache-2.0 or MIT
HOST_PACKFS_LICENSE_FILES = LICENSE-APACHE LICENSE-MIT
HOST_PACKFS_SUBDIR = crates/cli
HOST_PACKFS_CARGO_BUILD_OPTS = --no-default-features
HOST_PACKFS_CARGO_INSTALL_OPTS = --no-default-features

$(eval $(host-cargo-package))

# The rules of filesystems call $(HOST_DIR)/bin/TOOL. Packages of the original tools may have been
# installed after packfs, so the links are made right before an image.
define PACKFS_NAMES
	$(HOST_DIR)/bin/packfs install-names $(HOST_DIR)/bin --force \
		--only mksquashfs --only mkfs.erofs --only mkcramfs
endef

ROOTFS_SQUASHFS_DEPENDENCIES += host-packfs
ROOTFS_EROFS_DEPENDENCIES += host-packfs
ROOTFS_CRAMFS_DEPENDENCIES += host-packfs
ROOTFS_SQUASHFS_PRE_GEN_HOOKS += PACKFS_NAMES
ROOTFS_EROFS_PRE_GEN_HOOKS += PACKFS_NAMES
ROOTFS_CRAMFS_PRE_GEN_HOOKS += PACKFS_NAMES
