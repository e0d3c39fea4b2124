//! A study as Slurm jobs: an array of runs, and a job that compares them when all have ended.
//!
//! The scripts are short and meant to be read and edited. They contain no state: a task does whatever its run
//! still needs, so it may be killed, preempted and queued again at any time. Shortly before a task's time is
//! over, Slurm sends it a signal. The task then writes a checkpoint and exits with code 75, and its script
//! queues it again.

use super::progress::duration;
use crate::output::path_text;
use crate::{STOPPED, usage};
use leaklab_lab::study::{Plan, Resources};
use leaklab_record::{RecordError, StudyFolder, atomic};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Seconds of warning before a task's time is over: enough for a batch, an evaluation and a checkpoint.
const WARNING: u64 = 120;

/// Flags for running a study with Slurm.
#[derive(clap::Args)]
pub struct Flags {
    /// Submit the study to Slurm: an array of its runs, and a job that compares them.
    #[arg(long, group = "submission", conflicts_with_all = ["dry_run", "watch", "compare", "status", "run"])]
    pub slurm: bool,
    /// Write the scripts that --slurm would submit, and exit.
    #[arg(
        long,
        group = "submission",
        conflicts_with_all = ["slurm", "dry_run", "watch", "compare", "status", "run"]
    )]
    pub slurm_script: bool,
    /// Slurm partition.
    #[arg(long, value_name = "P", value_parser = line, requires = "submission")]
    partition: Option<String>,
    /// Time limit of a task in Slurm's notation, such as 90 (minutes), 8:00:00 or 1-12; from the plan if not
    /// given. A task that needs longer is queued again and continues.
    #[arg(long, value_name = "T", value_parser = time, requires = "submission")]
    time: Option<u64>,
    /// Cores per task; from the plan if not given.
    #[arg(
        long,
        value_name = "N",
        value_parser = crate::flags::threads,
        requires = "submission",
        allow_negative_numbers = true
    )]
    cpus: Option<usize>,
    /// Largest number of tasks at a time; as many as Slurm allows if not given.
    #[arg(long, value_name = "N", value_parser = crate::flags::threads, requires = "submission")]
    at_a_time: Option<usize>,
    /// Further options of sbatch, such as "--account=lab --qos=long".
    #[arg(
        long,
        value_name = "OPTIONS",
        value_parser = line,
        allow_hyphen_values = true,
        requires = "submission"
    )]
    extra: Option<String>,
}

/// Text that fits into one line of a script.
fn line(text: &str) -> Result<String, String> {
    let fits = !text.trim().is_empty() && !text.contains(['\n', '\r', '\0']);
    if fits { Ok(text.trim().to_owned()) } else { Err("one line of text is expected".to_owned()) }
}

/// Reads a time limit in Slurm's notation; returns seconds.
fn time(text: &str) -> Result<u64, String> {
    let refused = || {
        format!(
            "`{text}` is not a time limit: minutes, minutes:seconds, hours:minutes:seconds, days-hours, \
             days-hours:minutes or days-hours:minutes:seconds is expected"
        )
    };
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (Some(days), rest),
        None => (None, text),
    };
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    let parts: Option<Vec<u64>> = rest.split(':').map(number).collect();
    let seconds = match (days.map(number), parts.as_deref()) {
        (None, Some([m])) => Some(60 * m),
        (None, Some([m, s])) => Some(60 * m + s),
        (None, Some([h, m, s])) => Some(3600 * h + 60 * m + s),
        (Some(Some(d)), Some([h])) => Some(86_400 * d + 3600 * h),
        (Some(Some(d)), Some([h, m])) => Some(86_400 * d + 3600 * h + 60 * m),
        (Some(Some(d)), Some([h, m, s])) => Some(86_400 * d + 3600 * h + 60 * m + s),
        _ => None,
    };
    seconds.filter(|seconds| (60..=365 * 86_400).contains(seconds)).ok_or_else(refused)
}

/// Seconds in Slurm's notation, rounded up to whole minutes.
fn time_text(seconds: u64) -> String {
    let minutes = seconds.div_ceil(60);
    format!("{}-{:02}:{:02}:00", minutes / 1440, minutes / 60 % 24, minutes % 60)
}

/// The contents of the scripts.
pub struct Job<'a> {
    /// The flags.
    pub flags: &'a Flags,
    /// The plan, measured on this machine.
    pub plan: &'a Plan,
    /// The study's folder, an absolute path.
    pub folder: &'a StudyFolder,
    /// The command of a task, without the flag that selects the task.
    pub command: &'a [String],
}

/// Both scripts.
pub struct Scripts {
    /// The array of runs; `None` if all are done.
    pub runs: Option<PathBuf>,
    /// The comparison.
    pub compare: PathBuf,
}

impl Job<'_> {
    /// Writes the scripts into the folder `slurm` of the study.
    pub fn write(&self) -> Result<Scripts, Box<dyn std::error::Error>> {
        let within = self.folder.path().join("slurm");
        let place = path_text(&within)?;
        if place.contains(|c: char| c.is_whitespace() || c == '%' || c == '\\') {
            let reason = "Slurm cannot write its logs into a folder with a space, % or \\ in its name";
            return Err(usage(format!("{place}: {reason}; choose another --out")));
        }
        std::fs::create_dir_all(&within).map_err(RecordError::io(&within, "cannot be written"))?;
        let unfinished: Vec<usize> = self.plan.unfinished(self.folder);
        let needs = self.plan.resources(self.flags.cpus);
        let runs = (!unfinished.is_empty()).then(|| within.join("runs.sh"));
        if let Some(path) = &runs {
            write(path, &self.runs_script(&unfinished, &needs))?;
        }
        let compare = within.join("compare.sh");
        write(&compare, &self.compare_script(&needs))?;
        Ok(Scripts { runs, compare })
    }

    /// Submits the scripts; returns Slurm's job ids.
    pub fn submit(&self, scripts: &Scripts) -> Result<Vec<String>, Box<dyn std::error::Error>> {
        let mut jobs = Vec::new();
        let mut dependency = None;
        if let Some(runs) = &scripts.runs {
            let id = sbatch(&[], runs)?;
            dependency = Some(format!("--dependency=afterany:{id}"));
            jobs.push(id);
        }
        jobs.push(sbatch(dependency.as_slice(), &scripts.compare)?);
        Ok(jobs)
    }

    fn runs_script(&self, unfinished: &[usize], needs: &Resources) -> String {
        let limit = self.flags.time.unwrap_or(needs.run_limit);
        let throttle = self.flags.at_a_time.map_or(String::new(), |n| format!("%{n}"));
        let head = format!(
            "# The runs of the study {name}, one task each. Written by leaklab; edit as you like, then:\n\
             #     sbatch {path}\n\
             # A run takes about {run} on {cpus} cores like those of the machine that planned it. All runs\n\
             # together need about {megabytes} MB in {folder}.\n\
             #SBATCH --array={indices}{throttle}\n\
             #SBATCH --output={logs}/run-%a.log\n",
            name = self.plan.config.name.escape_default(),
            path = self.folder.path().join("slurm/runs.sh").display(),
            run = duration(needs.run_seconds),
            cpus = needs.cpus,
            megabytes = (self.plan.bytes / 1_000_000).max(1),
            folder = self.folder.path().display(),
            indices = ranges(unfinished),
            logs = self.folder.path().join("slurm").display(),
        );
        let task = ["--run".into(), "\"$SLURM_ARRAY_TASK_ID\"".into()];
        // The last task of an array has the array's id as its own job id; this name identifies one task only.
        self.script(&head, limit, needs, &task, "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}")
    }

    fn compare_script(&self, needs: &Resources) -> String {
        let limit = self.flags.time.unwrap_or(needs.compare_limit).max(needs.compare_limit);
        let head = format!(
            "# The comparison and the page of the study {name}. Written by leaklab; edit as you like, then,\n\
             # with the job id of the runs:\n\
             #     sbatch --dependency=afterany:ID {path}\n\
             #SBATCH --output={logs}/compare.log\n",
            name = self.plan.config.name.escape_default(),
            path = self.folder.path().join("slurm/compare.sh").display(),
            logs = self.folder.path().join("slurm").display(),
        );
        self.script(&head, limit, needs, &["--compare".into()], "$SLURM_JOB_ID")
    }

    fn script(&self, head: &str, limit: u64, needs: &Resources, task: &[String], job: &str) -> String {
        let warning = WARNING.min(limit / 4);
        let name: String =
            self.plan.config.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let mut options = vec![
            format!("--job-name=leaklab-{name}"),
            "--nodes=1 --ntasks=1".to_owned(),
            format!("--cpus-per-task={}", needs.cpus),
            format!("--mem={}M", needs.memory.div_ceil(1 << 20)),
            format!("--time={}", time_text(limit)),
            "--requeue --open-mode=append".to_owned(),
            format!("--signal=B:USR1@{warning}"),
        ];
        options.extend(self.flags.partition.as_ref().map(|partition| format!("--partition={partition}")));
        options.extend(self.flags.extra.clone());
        let options: String = options.iter().map(|option| format!("#SBATCH {option}\n")).collect();
        let command: Vec<String> =
            self.command.iter().map(|word| quoted(word)).chain(task.iter().cloned()).collect();
        format!(
            "#!/bin/bash\n{head}{options}\n\
             {command} --threads \"$SLURM_CPUS_PER_TASK\" &\n\
             task=$!\n\
             # Slurm's warning is passed on; the task then writes a checkpoint and exits with {STOPPED}.\n\
             trap 'warned=1; kill -USR1 \"$task\" 2>/dev/null' USR1 TERM\n\
             warned=1\n\
             while [ \"$warned\" = 1 ]; do warned=0; wait \"$task\"; code=$?; done\n\
             # 138: the warning came before the task could handle it.\n\
             case $code in {STOPPED} | 138) scontrol requeue \"{job}\" ;; esac\n\
             exit \"$code\"\n",
            command = command.join(" "),
        )
    }
}

/// Numbers in Slurm's notation of an array, such as 0-3,7.
fn ranges(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |(first, last): (usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.into_iter().map(text).collect::<Vec<_>>().join(",")
}

/// A word, quoted for the shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,/:+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The words of a command whose words were written by [`quoted`].
pub fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut within) = (Vec::new(), None::<String>, false);
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => within = !within,
            ' ' if !within => {
                words.extend(word.take());
                continue;
            }
            '\\' if !within => word.get_or_insert_default().extend(chars.next()),
            c => word.get_or_insert_default().push(c),
        }
        word.get_or_insert_default();
    }
    words.extend(word);
    words
}

fn write(path: &Path, text: &str) -> Result<(), RecordError> {
    atomic::write(path, text.as_bytes()).map_err(RecordError::io(path, "cannot be written"))
}

/// Submits a script; returns the job id.
fn sbatch(options: &[String], script: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let done = Command::new("sbatch").arg("--parsable").args(options).arg(script).output();
    let done =
        done.map_err(|e| format!("sbatch cannot be started: {e}; is this machine part of a Slurm cluster?"))?;
    if !done.status.success() {
        let message = String::from_utf8_lossy(&done.stderr);
        return Err(format!("sbatch refuses {}: {}", script.display(), message.trim()).into());
    }
    let reply = String::from_utf8_lossy(&done.stdout);
    // In a federation, the cluster's name follows the id.
    Ok(reply.trim().split(';').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_slurm_reads_them() {
        for (text, seconds) in [
            ("90", 5400),
            ("2:30", 150),
            ("8:00:00", 28_800),
            ("1-12", 129_600),
            ("1-12:30", 131_400),
            ("1-00:00:30", 86_430),
        ] {
            assert_eq!(time(text), Ok(seconds), "{text}");
        }
        for text in ["", "0", "-1", "1-", "a", "1:2:3:4", "1-2:3:4:5", "+5", "0:59", "1e3", "99999999999"] {
            assert!(time(text).is_err(), "{text}");
        }
        assert_eq!(time_text(131_400), "1-12:30:00");
        assert_eq!(time_text(61), "0-00:02:00");
    }

    #[test]
    fn arrays_are_short_and_words_are_safe() {
        assert_eq!(ranges(&[0, 1, 2, 3, 7, 9, 10]), "0-3,7,9-10");
        assert_eq!(ranges(&[5]), "5");
        assert_eq!(quoted("--set"), "--set");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(quoted(""), "''");
        assert!(line("--account=a\nrm -rf").is_err() && line(" ").is_err());
    }
}
