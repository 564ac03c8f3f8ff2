//! The words behind a workload that say what is unusual about its pods.
//!
//! Responsible for: `exclusive`, `tolerates=`, `finalizer=`, `restart=`, `exit=`, `ends-after=`, to the end of the line.

use api::taint::Toleration;
use api::view::RestartPolicy;

use super::ParseError;
use super::acts::effect_of;
use super::words::{Word, Words, digits};
use crate::config::Template;

pub(super) fn template(words: &mut Words<'_>) -> Result<Template, ParseError> {
    let mut template = Template::default();
    while let Some(word) = words.next() {
        match word.text.split_once('=') {
            None if word.text == "exclusive" => template.exclusive = true,
            Some(("tolerates", what)) => template.tolerations.push(toleration(words, word, what)?),
            Some(("finalizer", name)) if !name.is_empty() => template.finalizers.push(name.to_owned()),
            Some(("restart", policy)) => template.restart_policy = restart_policy(words, word, policy)?,
            Some(("exit", code)) => {
                let wrong =
                    || words.wrong(word, format!("an exit code is a number from 0 to 255, not `{code}`"));
                template.exit_code =
                    digits(code).and_then(|code| code.parse::<u8>().ok()).ok_or_else(wrong)?.into();
            }
            Some(("ends-after", time)) => template.ends_after = Some(words.time_of(word, time)?),
            _ => {
                let known = "exclusive, tolerates=…, finalizer=…, restart=…, exit=… or ends-after=…";
                return Err(words.wrong(word, format!("of pods can be said {known}, not `{}`", word.text)));
            }
        }
    }
    Ok(template)
}

/// `*`, `KEY`, `KEY:NoExecute`, `KEY:NoExecute:200s`.
fn toleration(words: &Words<'_>, word: Word<'_>, text: &str) -> Result<Toleration, ParseError> {
    let wrong = || {
        let text =
            format!("a toleration looks like *, KEY, KEY:NoExecute or KEY:NoExecute:200s, not like `{text}`");
        words.wrong(word, text)
    };
    let mut parts = text.split(':');
    let key = match parts.next() {
        None | Some("") => return Err(wrong()),
        Some("*") => "",
        Some(key) => key,
    };
    let effect = parts.next().map(|effect| effect_of(effect).ok_or_else(wrong)).transpose()?;
    let time = parts.next().map(|time| words.time_of(word, time)).transpose()?;
    if parts.next().is_some() {
        return Err(wrong());
    }
    // Kubernetes counts it in whole seconds.
    let secs = time.map(|time| i64::try_from(time.secs()).ok().filter(|_| time.ms().is_multiple_of(1000)));
    let secs = secs.map(|secs| secs.ok_or_else(wrong)).transpose()?;
    Ok(Toleration::exists(key, effect, secs))
}

fn restart_policy(words: &Words<'_>, word: Word<'_>, text: &str) -> Result<RestartPolicy, ParseError> {
    match text {
        "Always" => Ok(RestartPolicy::Always),
        "OnFailure" => Ok(RestartPolicy::OnFailure),
        "Never" => Ok(RestartPolicy::Never),
        other => {
            let text = format!("pods restart Always, OnFailure or Never, not `{other}`");
            Err(words.wrong(word, text))
        }
    }
}
