//! Archives of data sets, small enough for a test.

/// A `cifar-10-binary.tar.gz` whose six files contain what `records` returns for their numbers.
pub fn cifar_archive(compression: flate2::Compression, records: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), compression));
    let names = (1..=5).map(|i| format!("data_batch_{i}.bin")).chain(["test_batch.bin".to_owned()]);
    for (number, name) in names.enumerate() {
        let records = records(number);
        let mut header = tar::Header::new_gnu();
        header.set_size(records.len() as u64);
        header.set_mode(0o644);
        let path = format!("{}/{name}", leaklab_lab::data::cifar10::FOLDER);
        tar.append_data(&mut header, path, &records[..]).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}
