//! Writes a made-up study and its page into a folder: `cargo run -p leaklab-report --example synthetic -- FOLDER`.
//! The page tests use it; nothing in it was measured.

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

use std::path::Path;

fn main() {
    let folder = std::env::args().nth(1).expect("usage: synthetic FOLDER");
    let folder = Path::new(&folder);
    let hostile = "\"><script>document.title='broken'</script><b>'&\u{202e}名前";
    let plain = synthetic::Synthetic::default();
    let mut odd =
        synthetic::Synthetic { name: hostile.into(), dataset: hostile.into(), ..Default::default() };
    odd.taus = vec!["5", "10", "30", "100", "300", "inf"];
    for (name, study) in [("plain", plain), ("odd", odd)] {
        let folder = folder.join(name);
        let _ = std::fs::remove_dir_all(&folder);
        study.write(&folder);
        println!("{}", leaklab_report::study::write(&folder, None).expect("the page is written").display());
    }
    let begun = folder.join("begun");
    let _ = std::fs::remove_dir_all(&begun);
    std::fs::create_dir_all(&begun).expect("a folder");
    synthetic::Synthetic::default().write_settings(&begun);
    println!("{}", leaklab_report::study::write(&begun, None).expect("the page is written").display());
}
