#!/bin/sh
# The filesystem.squashfs of a live ISO: a tree by live-build, packed by the line of its stage
# binary_rootfs, once by each tool. Booted if a kernel is there. Needs live-build and dctrl-tools; takes minutes.
. "$(dirname "$0")/common.sh"

MIRROR=${MIRROR:-http://deb.debian.org/debian}
cd "$WORK"
if [ ! -e chroot.done ]; then
    lb config -d bookworm --architectures amd64 --mirror-bootstrap "$MIRROR" --security false --updates false \
        --backports false --debian-installer none --apt-indices false --memtest none --apt-recommends false \
        --firmware-chroot false --firmware-binary false --cache false --build-with-chroot false \
        --chroot-squashfs-compression-type zstd --chroot-squashfs-compression-level 3 \
        --debootstrap-options --variant=minbase > lb.log
    lb bootstrap >> lb.log 2>&1
    lb chroot >> lb.log 2>&1
    touch chroot.done
fi
for side in "$NAMES:ours" "$ORIGINALS:theirs"; do
    rm -rf binary .build/binary_rootfs
    mkdir -p binary/live .build
    touch .build/binary_chroot .build/config
    PATH=${side%:*}:$PATH timed "$WORK/${side##*:}.squashfs.seconds" lb binary_rootfs > "${side##*:}.log" 2>&1
    mv binary/live/filesystem.squashfs "${side##*:}.squashfs"
done
same_images squashfs ours.squashfs theirs.squashfs
told live-build ours.squashfs theirs.squashfs " ($(grep -c . ours.walk) lines of the walk)"
boot squashfs ours.squashfs 'echo packfs: booted $(. /etc/os-release; echo $PRETTY_NAME), $(ls /usr/bin | wc -l) programs'
