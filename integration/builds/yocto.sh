#!/bin/sh
# The commands of OpenEmbedded's image_types.bbclass, with the shell function of the class
# packfs-names before them, by packfs and by the originals. BitBake is not needed: the function is
# read from the class, with its variables filled in. SOURCE: the tree (default: /etc).
. "$(dirname "$0")/common.sh"

SOURCE=${SOURCE:-/etc}
rootfs=$WORK/rootfs
rm -rf "$rootfs" "$WORK/classes"
mkdir -p "$WORK/classes" "$WORK/bin"
cp -a "$SOURCE" "$rootfs"
ln -sf "$PACKFS" "$WORK/bin/packfs"
sed -n '/^packfs_names()/,/^}/p' "$here/../yocto/classes/packfs-names.bbclass" |
    sed -e "s|\${PACKFS_NAMES}|$WORK/classes/names|g" -e 's|${PACKFS_TOOLS}|mksquashfs mkfs.erofs mkfs.cramfs|' > "$WORK/function"

# line FORMAT COMMAND...: a command, whose words ROOTFS and IMAGE are replaced, by both.
line() {
    format=$1
    shift
    command=$(echo "$*" | sed -e "s|ROOTFS|$rootfs|")
    (PATH=$WORK/bin:$PATH && . "$WORK/function" > /dev/null && export SOURCE_DATE_EPOCH=1600000000 &&
        sh -ec "$(echo "$command" | sed "s|IMAGE|$WORK/ours|")" > "$WORK/log" 2>&1) || { cat "$WORK/log" >&2; exit 1; }
    (export PATH="$ORIGINALS:/sbin:$PATH" SOURCE_DATE_EPOCH=1600000000
        sh -ec "$(echo "$command" | sed "s|IMAGE|$WORK/theirs|")" > "$WORK/log" 2>&1) || { cat "$WORK/log" >&2; exit 1; }
    same_images "$format" "$WORK/ours" "$WORK/theirs"
    echo "yocto: equal: $*"
    rm -f "$WORK/ours" "$WORK/theirs"
}

for comp in '' '-comp xz' '-comp lzo' '-comp lz4' '-comp zstd'; do
    line squashfs "mksquashfs ROOTFS IMAGE -noappend $comp"
done
for comp in '' '-zlz4' '-zlz4hc'; do
    line erofs "mkfs.erofs $comp IMAGE ROOTFS"
done
