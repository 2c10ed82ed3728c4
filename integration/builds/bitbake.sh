#!/bin/sh
# The class packfs-names under BitBake itself: an image recipe that packs a tree by OpenEmbedded's own
# image_types.bbclass and the part of image.bbclass that makes tasks, by packfs and by the originals.
# BITBAKE: a checkout of bitbake; OECORE: one of openembedded-core. USER_NAME: an ordinary user,
# because BitBake refuses root. SOURCE: the tree.
. "$(dirname "$0")/common.sh"

BITBAKE=$(realpath "$BITBAKE")
OECORE=$(realpath "$OECORE")
SOURCE=${SOURCE:-/etc/ssl}
USER_NAME=${USER_NAME:-nobody}
TYPES=${TYPES:-squashfs squashfs-xz squashfs-lzo squashfs-lz4 squashfs-zst erofs erofs-lz4 erofs-lz4hc}
cd "$WORK"
rm -rf layer build rootfs bin
mkdir -p layer/conf layer/classes build/conf bin/packfs bin/original
cp -a "$SOURCE" rootfs
chown -R "$USER_NAME" rootfs
ln -s "$PACKFS" bin/packfs/packfs
for tool in mksquashfs mkfs.erofs; do ln -s "$ORIGINALS/$tool" "bin/original/$tool"; done

# image.bbclass needs packages of a whole distribution. Its last anonymous function, which makes the
# tasks, stands in a class of its own, with the classes inherited late, as there.
cp "$OECORE/meta/classes-recipe/image_types.bbclass" "$OECORE/meta/classes-recipe/image-artifact-names.bbclass" \
    "$here/../yocto/classes/packfs-names.bbclass" layer/classes/
: > layer/classes/siteinfo.bbclass
{
    echo 'IMAGE_CLASSES ??= ""'
    echo 'inherit_defer image_types ${IMAGE_CLASSES}'
    awk '/^python \(\) \{/ { text = ""; inside = 1 } inside { text = text $0 "\n" } inside && /^}/ { last = text; inside = 0 }
        END { printf "%s", last }' "$OECORE/meta/classes-recipe/image.bbclass"
} > layer/classes/image.bbclass
grep -q "bb.build.addtask(task, 'do_image_complete', after, d)" layer/classes/image.bbclass

cat > layer/conf/layer.conf <<'END'
BBPATH .= ":${LAYERDIR}"
BBFILES += "${LAYERDIR}/*.bb"
BBFILE_COLLECTIONS += "tried"
BBFILE_PATTERN_tried := "^${LAYERDIR}/"
LAYERSERIES_COMPAT_tried = "tried"
LAYERSERIES_CORENAMES = "tried"
END
cat > build/conf/bblayers.conf <<END
BBPATH = "\${TOPDIR}:$BITBAKE"
BBFILES = ""
BBLAYERS = "$WORK/layer"
END
printf 'require %s/conf/bitbake.conf\ninclude conf/local.conf\n' "$BITBAKE" > build/conf/bitbake.conf
# What OpenEmbedded's bitbake.conf says of these variables.
cat > layer/picture.bb <<'END'
SUMMARY = "A tree as images"
PV = "1"
OVERRIDES = "linux"
IMAGE_BASENAME = "${PN}"
IMAGE_MACHINE_SUFFIX = ""
IMAGE_VERSION_SUFFIX = ""
IMAGE_ROOTFS = "${TREE}"
IMGDEPLOYDIR = "${TOPDIR}/deploy-${SIDE}"
IMAGE_FSTYPES = "${TYPES}"
DEPLOY_DIR_IMAGE = "${TOPDIR}/deploy"
python set_image_size () {
    pass
}
python create_symlinks () {
    pass
}
python do_image () {
    bb.utils.mkdirhier(d.getVar('IMGDEPLOYDIR'))
}
do_image[nostamp] = "1"
addtask image
python do_image_complete () {
    pass
}
addtask image_complete after do_image before do_build
inherit image
python () {
    for kind in d.getVar('IMAGE_FSTYPES').split():
        task = 'do_image_' + kind.replace('-', '_')
        d.setVarFlag(task, 'depends', '')
        d.delVarFlag(task, 'fakeroot')
}
END

built() {
    side=$1
    cat > build/conf/local.conf <<END
TREE = "$WORK/rootfs"
TYPES = "$TYPES"
SIDE = "$side"
IMAGE_CLASSES = "$2"
TMPDIR = "\${TOPDIR}/tmp-$side"
PATH = "$WORK/bin/$side:/usr/bin:/bin:/usr/sbin:/sbin"
CACHE = "\${TMPDIR}/cache"
BB_SIGNATURE_HANDLER = "noop"
END
    chown -R "$USER_NAME" build
    su -s /bin/sh "$USER_NAME" -c "cd '$WORK/build' && export HOME='$WORK/build' BBPATH='$WORK/build' LC_ALL=en_US.UTF-8 &&
        PATH='$BITBAKE/bin':\$PATH BB_ENV_PASSTHROUGH_ADDITIONS=SIDE bitbake -c build picture" > "$side.log" 2>&1 ||
        { tail -30 "$side.log" >&2; exit 1; }
}
built packfs packfs-names
built original ''
for kind in $TYPES; do
    same_images "${kind%%-*}" "$WORK/build/deploy-packfs/picture.rootfs.$kind" "$WORK/build/deploy-original/picture.rootfs.$kind"
    # The task ran packfs, not another tool that it found.
    grep -q packfs_names build/tmp-packfs/work/*/temp/run.do_image_"$(echo "$kind" | tr - _)"
    echo "bitbake: equal: $kind, packfs $(stat -c %s "build/deploy-packfs/picture.rootfs.$kind") bytes," \
        "original $(stat -c %s "build/deploy-original/picture.rootfs.$kind") bytes"
done
