//! Compiles the schema folders in: each `lua/<name>/schema.toml` with the scripts beside it, so that adding a schema
//! is adding a folder and no Rust code names one.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("lua");
    println!("cargo::rerun-if-changed=lua");
    let mut code = String::from("&[\n");
    for folder in sorted(&root)? {
        let schema = folder.join("schema.toml");
        if !schema.is_file() {
            continue;
        }
        let _ = writeln!(code, "BuiltIn {{ folder: {:?}, toml: include_str!({schema:?}), scripts: &[", name(&folder));
        for script in sorted(&folder)?.iter().filter(|path| path.extension().is_some_and(|ext| ext == "lua")) {
            let _ = writeln!(code, "({:?}, include_str!({script:?})),", name(script));
        }
        code.push_str("] },\n");
    }
    code.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("built_in.rs"), code)
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
