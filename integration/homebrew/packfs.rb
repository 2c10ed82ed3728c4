class Packfs < Formula
  desc "@DESCRIPTION@"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_arm do
    url "@RELEASE@/packfs-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
    sha256 "@SHA256_aarch64@"
  end
  on_intel do
    url "@RELEASE@/packfs-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
    sha256 "@SHA256_x86_64@"
  end

  depends_on :linux

  def install
    prefix.install "bin", "share"
  end

  test do
    (testpath/"tree/file").write "packed"
    system bin/"packfs", "pack", "tree", "image.sqfs"
    assert_equal "packed", shell_output("#{bin}/packfs cat image.sqfs file")
  end
end
