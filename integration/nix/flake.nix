{
  description = "@DESCRIPTION@";

  # Without nixpkgs: the program is static, so the package is the unpacked archive, which Nix itself links.
  outputs = { self }:
    let
      package = arch: hash: {
        name = "${arch}-linux";
        value.default = derivation {
          name = "packfs-@VERSION@";
          system = "builtin";
          builder = "builtin:buildenv";
          derivations = [
            "true" # active, its priority, the number of its outputs
            5
            1
            (builtins.fetchTarball {
              url = "@RELEASE@/packfs-@VERSION@-${arch}-unknown-linux-musl.tar.zst";
              sha256 = hash;
            })
          ];
          manifest = builtins.toFile "manifest.nix" "[ ]";
        } // { meta.mainProgram = "packfs"; };
      };
    in
    {
      packages = builtins.listToAttrs [
        (package "x86_64" "@NAR_x86_64@")
        (package "aarch64" "@NAR_aarch64@")
      ];
    };
}
