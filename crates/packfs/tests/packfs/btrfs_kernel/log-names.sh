# Changes names of files of log-before.sh in the mounted btrfs at $1, and syncs directories.
cd "$1"
rm gone
ln -s d symlink
rm two-again n2000402
sync .
(cd many && rm 7 8 400 && touch added && sync added && sync .)
seq 2000 > sub/file
sync sub/file
echo x > sub/other
sync sub/other
