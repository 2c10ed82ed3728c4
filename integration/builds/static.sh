#!/bin/sh
# A static program of `cargo xtask dist`, as a user has it: unpacked, its checksum and list of crates
# read, and run; also under the names of other tools, and serving an image that it reads by HTTP.
# `cargo xtask dist --smoke` calls it for each archive. Runs without root. TARGET: the target. RUN:
# what runs its programs, such as qemu-aarch64-static.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
target=$here/../../target
TARGET=${TARGET:-x86_64-unknown-linux-musl}
RUN=${RUN:-}
DIST=$(realpath "${DIST:-$target/dist}")
WORK=${WORK:-$target/builds/static-$TARGET}
rm -rf "$WORK"
mkdir -p "$WORK"
cd "$WORK"

archive=$(cd "$DIST" && ls packfs-*-"$TARGET".tar.zst)
name=${archive%.tar.zst}
(cd "$DIST" && grep -E " $name\.(tar\.zst|tar\.gz|cdx\.json)\$" SHA256SUMS | sha256sum --quiet -c -)
tar -xf "$DIST/$archive"
zstd -qdc "$DIST/$archive" > zst.tar
gzip -dc "$DIST/$name.tar.gz" | cmp - zst.tar
cmp "$name/share/doc/packfs/sbom.cdx.json" "$DIST/$name.cdx.json"
python3 - "$name/share/doc/packfs/sbom.cdx.json" "$TARGET" <<'END'
import json, sys
bill = json.load(open(sys.argv[1]))
assert bill["bomFormat"] == "CycloneDX" and sys.argv[2] in json.dumps(bill["metadata"])
assert all(part["name"] and part["version"] and part["licenses"] for part in bill["components"])
print("static:", len(bill["components"]), "crates with licenses")
END
grep -q '^zstd-sys .*BSD-3-Clause' "$name/share/doc/packfs/licenses/crates.txt"
[ -s "$name/share/doc/packfs/licenses/musl.txt" ] && [ -s "$name/share/doc/packfs/licenses/rust-library.html" ]
bash -n "$name/share/bash-completion/completions/packfs"
grep -q '#compdef packfs' "$name/share/zsh/site-functions/_packfs"
grep -q 'complete -c packfs' "$name/share/fish/vendor_completions.d/packfs.fish"
for page in "$name"/share/man/man1/*.1; do grep -q '^\.SH NAME' "$page"; done
file "$name/bin/packfs" | grep -Eq 'static(ally|-pie) linked'
echo "static: $(ls "$name/share/man/man1" | wc -l) manual pages, program $(stat -c %s "$name/bin/packfs") bytes"

packfs() { $RUN "$PWD/$name/bin/packfs" "$@"; }
mkdir -p tree/etc tree/usr/bin
seq 200000 > tree/etc/numbers
printf 'ID=example\n' > tree/etc/os-release
cp "$name/bin/packfs" tree/usr/bin/program
ln -s ../etc/os-release tree/usr/release
ln tree/etc/numbers tree/usr/numbers
find tree -exec touch -h -d @1600000000 {} +

packfs --version
for image in a.sqfs:gzip b.sqfs:zstd:3 c.sqfs:xz d.sqfs:lz4hc e.sqfs:lzo a.erofs:lz4 b.erofs:zstd:3 c.erofs:lzma; do
    file=${image%%:*}
    packfs pack -q tree "$file" --codec "${image#*:}"
    packfs check --data "$file" > /dev/null
    rm -rf out
    packfs unpack -q "$file" out
    diff -r tree out
    packfs diff tree "$file"
    echo "static: $image packed, checked, unpacked, and equal, $(stat -c %s "$file") bytes"
done
packfs pack -q a.sqfs d.erofs
packfs diff a.sqfs d.erofs
packfs tar a.sqfs -o a.tar
packfs digest tree a.sqfs a.tar > digests
[ "$(cut -d' ' -f1 digests | sort -u | wc -l)" = 1 ]

# As another tool, by `as` and by argument 0.
packfs as mksquashfs tree f.sqfs -noappend -quiet -no-progress
packfs as unsquashfs -n -d unpacked f.sqfs > /dev/null
diff -r tree unpacked
packfs as mkfs.erofs --quiet -zlz4hc f.erofs tree
packfs as fsck.erofs --extract f.erofs
ln -s "$name/bin/packfs" unsquashfs
if [ "$RUN" ]; then $RUN -0 unsquashfs "$name/bin/packfs" -s a.sqfs; else ./unsquashfs -s a.sqfs; fi > superblock
grep -q '^Compression gzip' superblock

# Serves an image that holds another one, which is read where it lies.
mkdir outer
cp b.erofs outer/inner.erofs
packfs pack -q outer outer.sqfs
port=${PORT:-18765}
# Without a shell around it, which alone the signal would end.
(exec $RUN "$name/bin/packfs" serve outer.sqfs --listen "127.0.0.1:$port") > serve.log 2>&1 &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT
until grep -q "$port" serve.log; do sleep 0.2; kill -0 $server; done
curl -sf "http://127.0.0.1:$port/inner.erofs" | cmp - b.erofs
packfs cat "http://127.0.0.1:$port/inner.erofs" etc/numbers | cmp - tree/etc/numbers
packfs diff tree "http://127.0.0.1:$port/inner.erofs"
kill $server
wait $server || true
echo "static: served, and read by HTTP"

# Wrong requests end as they should.
expect() { code=0; wanted=$1; shift; packfs "$@" > /dev/null 2>&1 || code=$?; [ "$code" = "$wanted" ] ||
    { echo "exit code $code instead of $wanted: $*" >&2; exit 1; }; }
head -c 3000 a.sqfs > cut.sqfs
expect 3 check --data cut.sqfs
expect 2 pack
expect 1 ls missing
echo "static: $TARGET passed"
