//! Damage to a checkpoint is detected, and the previous one is used.

use leaklab_record::RunFolder;
use leaklab_record::checkpoint::{self, Checkpoint, Header, Position, Tensor};
use std::fs;
use std::path::Path;

fn example(epoch: u64) -> Checkpoint {
    let tensor = |name: &str, shape: &[usize]| Tensor {
        name: name.to_owned(),
        shape: shape.to_vec(),
        values: (0..shape.iter().product()).map(|i| i as f32 * 0.1 + epoch as f32).collect(),
    };
    Checkpoint {
        header: Header {
            format: checkpoint::FORMAT,
            checksum: String::new(),
            position: Position { seed: 7, epoch, squared_error: 0.1 + 0.2, ..Position::default() },
            settings: [("tau".to_owned(), "inf".to_owned())].into(),
            data: "0123".to_owned(),
        },
        tensors: vec![
            tensor("conv1", &[2, 1, 3, 3]),
            tensor("fc1", &[3, 32]),
            tensor("optimiser.velocity", &[5]),
        ],
    }
}

fn unsigned(mut checkpoint: Checkpoint) -> Checkpoint {
    checkpoint.header.checksum.clear();
    checkpoint
}

#[test]
fn survives_disk_and_is_the_same_bytes_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    example(3).write(&path).unwrap();
    assert_eq!(unsigned(Checkpoint::read(&path).unwrap()), example(3));
    assert_eq!(fs::read(&path).unwrap(), example(3).to_bytes());
}

#[test]
fn every_flipped_bit_and_every_truncation_is_noticed() {
    let path = Path::new("a.safetensors");
    let whole = example(3).to_bytes();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(Checkpoint::from_bytes(bytes, path).is_err(), "bit {bit} flipped and not noticed");
    }
    for length in 0..whole.len() {
        let cut = whole[..length].to_vec();
        assert!(Checkpoint::from_bytes(cut, path).is_err(), "cut to {length} bytes and not noticed");
    }
}

#[test]
fn the_previous_checkpoint_steps_in() {
    let parent = tempfile::tempdir().unwrap();
    let folder = RunFolder::at(parent.path());
    let lock = folder.lock().unwrap();
    assert!(checkpoint::find(&folder).unwrap().is_none());
    example(1).save(&folder, &lock).unwrap();
    example(2).save(&folder, &lock).unwrap();
    assert_eq!(checkpoint::find(&folder).unwrap().unwrap().checkpoint.header.position.epoch, 2);

    let whole = fs::read(folder.checkpoint()).unwrap();
    fs::write(folder.checkpoint(), &whole[..whole.len() / 2]).unwrap();
    let found = checkpoint::recover(&folder, &lock).unwrap().unwrap();
    assert_eq!(found.checkpoint.header.position.epoch, 1);
    let reason = found.instead_of.unwrap().to_string();
    assert!(reason.contains("checkpoint.safetensors: damaged"), "{reason}");
    assert!(!folder.checkpoint().exists(), "a damaged file must not become the previous checkpoint");

    // As after a kill before the new checkpoint is in place: only the previous one exists, and it must
    // survive the next save.
    example(2).save(&folder, &lock).unwrap();
    assert_eq!(Checkpoint::read(&folder.previous_checkpoint()).unwrap().header.position.epoch, 1);
    fs::write(folder.checkpoint(), b"").unwrap();
    fs::write(folder.previous_checkpoint(), b"").unwrap();
    assert!(checkpoint::find(&folder).is_err());
}

/// Nobody knows whether a file that cannot be read at the moment is damaged.
#[cfg(unix)]
#[test]
fn an_error_of_the_system_is_not_damage() {
    let parent = tempfile::tempdir().unwrap();
    let folder = RunFolder::at(parent.path());
    let lock = folder.lock().unwrap();
    example(1).save(&folder, &lock).unwrap();
    example(2).save(&folder, &lock).unwrap();
    // A link to itself stands for a disk that fails.
    let unreadable = |path: &Path| {
        fs::remove_file(path).unwrap();
        std::os::unix::fs::symlink(path, path).unwrap();
    };
    unreadable(&folder.checkpoint());
    let message = checkpoint::recover(&folder, &lock).unwrap_err().to_string();
    assert!(message.contains("checkpoint.safetensors: cannot be read"), "{message}");
    assert!(fs::symlink_metadata(folder.checkpoint()).is_ok(), "it was moved aside");
    // Nor is a run whose only checkpoint cannot be read a new run.
    fs::remove_file(folder.checkpoint()).unwrap();
    unreadable(&folder.previous_checkpoint());
    let message = checkpoint::recover(&folder, &lock).unwrap_err().to_string();
    assert!(message.contains("checkpoint.previous.safetensors: cannot be read"), "{message}");
}

#[test]
fn numbers_that_are_not_finite_are_not_written() {
    let changes: [fn(&mut Position); 3] = [
        |position| position.squared_error = f64::INFINITY,
        |position| position.first_squared_error = f64::NAN,
        |position| position.best_accuracy = f64::NEG_INFINITY,
    ];
    for change in changes {
        let mut checkpoint = example(1);
        change(&mut checkpoint.header.position);
        assert!(std::panic::catch_unwind(|| checkpoint.to_bytes()).is_err());
    }
}

#[test]
fn a_later_format_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.safetensors");
    let mut later = example(1);
    later.header.format = 9;
    later.write(&path).unwrap();
    let message = Checkpoint::read(&path).unwrap_err().to_string();
    assert!(message.contains("checkpoint format 9") && message.contains("update leaklab"), "{message}");
}

#[cfg(unix)]
#[test]
fn a_kill_within_the_rotation_leaves_nothing_behind() {
    let parent = tempfile::tempdir().unwrap();
    let folder = RunFolder::at(parent.path());
    let lock = folder.lock().unwrap();
    example(1).save(&folder, &lock).unwrap();
    // As after a kill when the checkpoint has also become the previous one and the next is not yet in place.
    fs::hard_link(folder.checkpoint(), folder.previous_checkpoint()).unwrap();
    example(2).save(&folder, &lock).unwrap();
    let epoch = |path: &Path| Checkpoint::read(path).unwrap().header.position.epoch;
    assert_eq!((epoch(&folder.previous_checkpoint()), epoch(&folder.checkpoint())), (1, 2));
    let mut left: Vec<_> = fs::read_dir(parent.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["checkpoint.previous.safetensors", "checkpoint.safetensors", "lock"]);
}
