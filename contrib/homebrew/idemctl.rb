# The release workflow writes the version and the checksums (scripts/release.sh formula), and copies the file into the tap.
class Idemctl < Formula
  desc "Inspect, unlock and race the idempotency keys that services keep in Redis"
  homepage "https://github.com/OWNER/idemctl"
  version "0.3.0"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "https://github.com/OWNER/idemctl/releases/download/v0.3.0/idemctl-0.3.0-aarch64-apple-darwin.tar.gz"
      sha256 "0000000000000000000000000000000000000000000000000000000000000000"
    end
    on_intel do
      url "https://github.com/OWNER/idemctl/releases/download/v0.3.0/idemctl-0.3.0-x86_64-apple-darwin.tar.gz"
      sha256 "0000000000000000000000000000000000000000000000000000000000000000"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/OWNER/idemctl/releases/download/v0.3.0/idemctl-0.3.0-aarch64-unknown-linux-musl.tar.gz"
      sha256 "0000000000000000000000000000000000000000000000000000000000000000"
    end
    on_intel do
      url "https://github.com/OWNER/idemctl/releases/download/v0.3.0/idemctl-0.3.0-x86_64-unknown-linux-musl.tar.gz"
      sha256 "0000000000000000000000000000000000000000000000000000000000000000"
    end
  end

  def install
    bin.install "idemctl"
    man1.install Dir["man/*.1"]
    man5.install Dir["man/*.5"]
    man7.install Dir["man/*.7"]
    bash_completion.install "completions/idemctl.bash" => "idemctl"
    zsh_completion.install "completions/_idemctl"
    fish_completion.install "completions/idemctl.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/idemctl --version")
    assert_match "go-middleware", shell_output("#{bin}/idemctl schema list")
  end
end
