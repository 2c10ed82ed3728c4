#!/bin/sh
# Disk images by mkosi and its systemd-repart, both of Debian sid, with a root partition of SquashFS
# and of EROFS. mkosi runs in a tree of Debian's packages, unpacked and not installed, and finds the
# tools in its PATH. Needs debootstrap, partx, and a static busybox (BUSYBOX).
. "$(dirname "$0")/common.sh"

tools=$WORK/tools
project=$WORK/project
if [ ! -e "$tools/usr/bin/mkosi" ]; then
    debootstrap --download-only --variant=minbase --keyring "${KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}" \
        --include=mkosi,systemd-repart,squashfs-tools,erofs-utils,python3,fdisk,kmod,cpio,dosfstools,mtools,systemd,uidmap \
        sid "$WORK/download" "${MIRROR:-http://deb.debian.org/debian}" > "$WORK/debootstrap.log"
    for package in "$WORK"/download/var/cache/apt/archives/*.deb; do dpkg-deb --extract "$package" "$tools"; done
    for name in bin sbin lib lib64; do [ -e "$tools/$name" ] || ln -s "usr/$name" "$tools/$name"; done
    for name in proc sys dev tmp run etc root old project; do mkdir -p "$tools/$name"; done
    printf 'root:x:0:0:root:/root:/bin/sh\n' > "$tools/etc/passwd"
    printf 'root:x:0:\n' > "$tools/etc/group"
fi

rm -rf "$project"
mkdir -p "$project/mkosi.repart" "$project/names"
small_root "$project/base"
cat > "$project/mkosi.conf" <<'END'
[Distribution]
Distribution=custom

[Output]
Format=disk
ImageId=image
Seed=c151c42a-73b2-46ad-8388-3cdf070fb1c4

[Content]
BaseTrees=/project/base
Bootable=no
ElTorito=no
CleanPackageMetadata=no
SourceDateEpoch=1600000000

[Build]
History=no
END
cp "$PACKFS" "$project/packfs"

# inside PATH COMMAND...: runs a command whose root is the tree of tools, in mounts of its own.
inside() {
    unshare --mount --fork sh -ec '
        tools=$1 project=$2 path=$3
        shift 3
        mount --make-rprivate /
        mount --bind "$tools" "$tools"
        mount --bind "$project" "$tools/project"
        mount --rbind /dev "$tools/dev"
        mount --rbind /sys "$tools/sys"
        mount -t proc proc "$tools/proc"
        mount -t tmpfs tmpfs "$tools/tmp"
        mount -t tmpfs tmpfs "$tools/run"
        cd "$tools"
        pivot_root . old
        umount -l old
        cd /project
        export HOME=/root TMPDIR=/tmp PATH="$path"
        exec "$@"' sh "$tools" "$project" "$@"
}

for format in squashfs erofs; do
    root_partition "$format" / > "$project/mkosi.repart/root.conf"
    for side in ours theirs; do
        # mkosi shows its sandbox the /usr of the tools alone, so the names replace the originals there.
        for name in mksquashfs mkfs.erofs; do
            [ -e "$tools/usr/bin/$name.original" ] || mv "$tools/usr/bin/$name" "$tools/usr/bin/$name.original"
            case $side in
            ours) cp "$PACKFS" "$tools/usr/bin/$name" ;;
            theirs) cp "$tools/usr/bin/$name.original" "$tools/usr/bin/$name" ;;
            esac
        done
        rm -rf "$project"/image*
        timed "$WORK/$side.raw.seconds" inside /usr/sbin:/usr/bin mkosi --force build > "$WORK/mkosi.log" 2>&1 ||
            { tail -30 "$WORK/mkosi.log" >&2; exit 1; }
        cp --sparse=always -L "$project/image.raw" "$WORK/$side.raw"
    done
    same_disks mkosi "$format"
done
