# Fills the mounted btrfs at $1 with files that are changed later, and commits.
cd "$1"
mkdir d many
seq 10000 > d/old
seq 100000 > cut
seq 100000 > overwritten
seq 100000 > punched
cp --reflink=always punched clone
echo gone > gone
echo short > short
echo mode > mode
setfattr -n user.x -v 1 d/old
setfattr -n user.gone -v 1 short
(cd many && seq 500 | xargs touch)
echo two > two
ln two two-again
btrfs -q subvolume create n1371838
echo b > n2000402
btrfs -q subvolume create sub
seq 1000 > sub/file
sync -f .
