//! Writes synthetic studies and their pages to a folder: `cargo run -p leaklab-report --example synthetic --
//! FOLDER`. The page tests use them; none of their numbers was measured.

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

use std::path::Path;
use synthetic::{Made, Synthetic};

fn main() {
    let folder = std::env::args().nth(1).expect("usage: synthetic FOLDER");
    let folder = Path::new(&folder);
    let hostile = "=\"><script>document.title='broken'</script><b>'&\u{202e}名前";
    let mut odd = Synthetic::sweep(&[5.0, 10.0, 30.0, 100.0, 300.0, f64::INFINITY]);
    odd.conditions.push(Made::named(hostile, "v_th = 2", 0.15));
    let odd = Synthetic { name: hostile.into(), dataset: hostile.into(), ..odd };
    let studies = [
        ("plain", Synthetic::default()),
        ("odd", odd),
        ("two-by-two", Synthetic::two_by_two()),
        ("dead", Synthetic::with_dead()),
        ("events", Synthetic::events()),
    ];
    for (name, study) in studies {
        let folder = folder.join(name);
        let _ = std::fs::remove_dir_all(&folder);
        study.write(&folder);
        page(&folder);
        if name == "plain" {
            page(&folder.join("runs/tau-30_seed-1"));
        }
    }
    let begun = folder.join("begun");
    let _ = std::fs::remove_dir_all(&begun);
    Synthetic::default().begin(&begun);
    page(&begun);
}

fn page(folder: &Path) {
    println!("{}", leaklab_report::study::write(folder, None).expect("the page is written").display());
}
