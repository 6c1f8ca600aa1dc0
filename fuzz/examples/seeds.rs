//! Writes the initial inputs to `corpus/<target>/`.

use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    for (target, seeds) in umbel_fuzz::seeds::all()? {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        std::fs::create_dir_all(&folder)?;
        for (name, bytes) in seeds {
            std::fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(())
}
