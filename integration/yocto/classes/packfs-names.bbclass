# Images of the types squashfs, squashfs-*, erofs, erofs-*, and cramfs are packed by packfs.
#
# conf/local.conf:
#     HOSTTOOLS += "packfs"
#     IMAGE_CLASSES += "packfs-names"
#
# packfs has to be linked dynamically: image tasks run under pseudo, which a static program does not
# see. PACKFS_TOOLS lists the names that are taken over; all others stay those of OpenEmbedded.

PACKFS_TOOLS ?= "mksquashfs mkfs.erofs mkfs.cramfs"
PACKFS_TYPES ?= "squashfs squashfs-xz squashfs-lzo squashfs-lz4 squashfs-zst erofs erofs-lz4 erofs-lz4hc cramfs"
PACKFS_NAMES = "${WORKDIR}/packfs-names"

packfs_names() {
    mkdir -p ${PACKFS_NAMES}
    for tool in ${PACKFS_TOOLS}; do
        packfs install-names ${PACKFS_NAMES} --force --only $tool
    done
    PATH="${PACKFS_NAMES}:$PATH"
    export PATH
}

# Before image.bbclass makes tasks of the commands in its anonymous function, which stands before
# those of classes that it inherits late.
addhandler packfs_names_commands
packfs_names_commands[eventmask] = "bb.event.RecipePreFinalise"
python packfs_names_commands () {
    for image_type in d.getVar('PACKFS_TYPES').split():
        if d.getVar('IMAGE_CMD:' + image_type, False):
            d.prependVar('IMAGE_CMD:' + image_type, 'packfs_names; ')
}
