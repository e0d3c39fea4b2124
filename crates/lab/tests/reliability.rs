//! `docs/reliability.md` names a test for every guarantee; this test checks that they exist.

use std::fs;
use std::path::Path;

#[test]
fn every_test_that_is_named_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("docs/reliability.md")).unwrap();
    let mut named = 0;
    for quoted in text.split('`').skip(1).step_by(2) {
        let Some((file, test)) = quoted.split_once(": ") else { continue };
        let source =
            fs::read_to_string(root.join("crates").join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let (rust, python) = (format!("fn {test}("), format!("def {test}("));
        assert!(source.contains(&rust) || source.contains(&python), "{file} has no test {test}");
        named += 1;
    }
    assert!(named > 30, "only {named} tests are named");
}
