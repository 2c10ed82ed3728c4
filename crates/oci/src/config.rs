//! Configuration of an image that is pushed.

use crate::images::image;
use packfs_core::{Error, Limits, Progress, Result};
use packfs_remote::RemoteOptions;
use packfs_remote::oci::{Digest, EROFS, OciPlace, Platform};
use serde_json::{Map, Value, json};

/// Configuration of an image: one to begin with, and what programs that run the image look at.
#[derive(Clone, Debug, Default)]
pub struct ImageConfig {
    /// Configuration to begin with, as JSON of the OCI image specification.
    pub base: Option<Vec<u8>>,
    /// Image whose configuration is to begin with, instead.
    pub like: Option<OciPlace>,
    /// Program that is run.
    pub entrypoint: Option<Vec<String>>,
    /// Arguments of the program, or the program itself.
    pub cmd: Option<Vec<String>>,
    /// Variables of the environment, as `NAME=VALUE`; they replace those of the same name.
    pub env: Vec<String>,
    /// User and perhaps group that the program runs as.
    pub user: Option<String>,
    /// Directory that the program starts in.
    pub workdir: Option<String>,
    /// Labels, as `NAME=VALUE`; they replace those of the same name.
    pub labels: Vec<String>,
}

impl ImageConfig {
    /// Returns the configuration, without the layers that it has to name.
    ///
    /// Errors: `Usage` for values that are none; those of opening the other image.
    pub(crate) fn made(
        &self,
        remote: &RemoteOptions,
        limits: Limits,
        progress: &dyn Progress,
    ) -> Result<Value> {
        let parsed = |bytes: &[u8]| serde_json::from_slice(bytes).map_err(|_| wrong("it is no JSON"));
        let mut config: Value = match (&self.base, &self.like) {
            (Some(bytes), _) => parsed(bytes)?,
            (None, Some(place)) => parsed(&image(place, remote, limits, false, progress)?.config)?,
            (None, None) => empty(&remote.oci.platform.clone().unwrap_or_else(Platform::of_machine)),
        };
        let object = config.as_object_mut().ok_or_else(|| wrong("it is no JSON object"))?;
        // Of other layers.
        object.remove("history");
        match &remote.oci.platform {
            Some(platform) if self.base.is_some() || self.like.is_some() => put_platform(object, platform),
            None if !object.contains_key("os") => put_platform(object, &Platform::of_machine()),
            _ => {}
        }
        let run = object.entry("config").or_insert_with(|| json!({}));
        if run.is_null() {
            *run = json!({});
        }
        self.change(run.as_object_mut().ok_or_else(|| wrong("its \"config\" is no JSON object"))?)?;
        Ok(config)
    }

    fn change(&self, run: &mut Map<String, Value>) -> Result<()> {
        for (key, value) in [
            ("Entrypoint", self.entrypoint.as_ref().map(|words| json!(words))),
            ("Cmd", self.cmd.as_ref().map(|words| json!(words))),
            ("User", self.user.as_ref().map(|user| json!(user))),
            ("WorkingDir", self.workdir.as_ref().map(|dir| json!(dir))),
        ] {
            if let Some(value) = value {
                run.insert(key.into(), value);
            }
        }
        if !self.env.is_empty() {
            let mut all: Vec<String> = match run.get("Env") {
                Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
                _ => Vec::new(),
            };
            for variable in &self.env {
                let (name, _) = pair(variable, "--env")?;
                all.retain(|own| own.split('=').next() != Some(name));
                all.push(variable.clone());
            }
            run.insert("Env".into(), json!(all));
        }
        if !self.labels.is_empty() && !run.get("Labels").is_some_and(Value::is_object) {
            run.insert("Labels".into(), json!({}));
        }
        for label in &self.labels {
            let (name, value) = pair(label, "--label")?;
            if let Some(labels) = run.get_mut("Labels").and_then(Value::as_object_mut) {
                labels.insert(name.into(), value.into());
            }
        }
        Ok(())
    }
}

/// Parses the words of a program: a JSON list, or a single one.
///
/// Errors: `Usage`.
pub fn words(text: &str) -> Result<Vec<String>> {
    let wrong = || Error::usage("a JSON list of strings is expected, such as [\"sh\",\"-c\"], or one word");
    match text.trim_start().starts_with('[') {
        true => serde_json::from_str(text).map_err(|_| wrong()),
        false if text.contains(char::is_whitespace) => Err(wrong()),
        false => Ok(vec![text.to_owned()]),
    }
}

/// Returns the configuration of an image that nothing is known of.
fn empty(platform: &Platform) -> Value {
    let mut config = json!({
        "architecture": platform.architecture,
        "os": platform.os,
        "os.features": [EROFS],
        "config": {},
        "rootfs": {},
    });
    if let (Some(object), Some(variant)) = (config.as_object_mut(), &platform.variant) {
        object.insert("variant".into(), variant.as_str().into());
    }
    config
}

fn put_platform(object: &mut Map<String, Value>, platform: &Platform) {
    object.insert("architecture".into(), json!(platform.architecture));
    object.insert("os".into(), json!(platform.os));
    object.remove("variant");
    if let Some(variant) = &platform.variant {
        object.insert("variant".into(), json!(variant));
    }
}

fn wrong(why: &str) -> Error {
    Error::usage(format!("cannot take the configuration: {why}"))
        .hint("a configuration is that of the OCI image specification, as in blobs of image layouts")
}

/// Splits `NAME=VALUE`.
fn pair<'a>(text: &'a str, option: &str) -> Result<(&'a str, &'a str)> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    parts.ok_or_else(|| Error::usage(format!("{option} {text:?}: NAME=VALUE is expected")))
}

/// Replaces the digests of layers in a configuration, and says that it needs EROFS.
pub fn with_layers(mut config: Value, diff_ids: &[Digest]) -> Result<String> {
    let wrong = || Error::corrupt("configuration of the image", "it is no JSON object");
    let object = config.as_object_mut().ok_or_else(wrong)?;
    object.insert("rootfs".into(), serde_json::json!({ "type": "layers", "diff_ids": diff_ids }));
    let features = object.entry("os.features").or_insert_with(|| Value::Array(Vec::new()));
    match features.as_array_mut() {
        Some(all) if all.iter().any(|feature| feature == EROFS) => {}
        Some(all) => all.push(EROFS.into()),
        None => *features = serde_json::json!([EROFS]),
    }
    Ok(config.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use packfs_core::Silent;

    #[test]
    fn values_replace_those_of_the_configuration_to_begin_with() {
        let base = br#"{"os":"linux","architecture":"arm64","history":[{}],"author":"me",
            "config":{"Cmd":["a"],"Env":["A=1","B=2"],"Labels":{"x":"1"},"User":"0"}}"#;
        let config = ImageConfig {
            base: Some(base.to_vec()),
            cmd: Some(vec!["sh".into(), "-c".into()]),
            env: vec!["B=3=4".into(), "C=".into()],
            labels: vec!["y=2".into()],
            ..ImageConfig::default()
        };
        let made = config.made(&RemoteOptions::default(), Limits::default(), &Silent).unwrap();
        let wanted = json!({"os": "linux", "architecture": "arm64", "author": "me", "config": {
            "Cmd": ["sh", "-c"], "Env": ["A=1", "B=3=4", "C="], "Labels": {"x": "1", "y": "2"}, "User": "0"}});
        assert_eq!(made, wanted);
        for (base, env) in
            [("[]", "A=1"), ("{\"config\":[]}", "A=1"), ("{}", "A"), ("{}", "=1"), ("x", "A=1")]
        {
            let base = Some(base.as_bytes().to_vec());
            let config = ImageConfig { base, env: vec![env.into()], ..ImageConfig::default() };
            assert!(config.made(&RemoteOptions::default(), Limits::default(), &Silent).is_err(), "{env}");
        }
    }

    #[test]
    fn a_configuration_keeps_all_but_its_layers() {
        let id = Digest::of(b"");
        let config = serde_json::json!({"os": "linux", "config": {"Cmd": ["sh"]},
            "rootfs": {"type": "layers", "diff_ids": []}, "x": [1]});
        let found: Value =
            serde_json::from_str(&with_layers(config, std::slice::from_ref(&id)).unwrap()).unwrap();
        assert_eq!(found["config"]["Cmd"][0], "sh");
        assert_eq!(found["x"][0], 1);
        assert_eq!(found["rootfs"]["diff_ids"][0], id.to_string());
        assert_eq!(found["os.features"], serde_json::json!(["erofs"]));
        let again = with_layers(found.clone(), &[id]).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&again).unwrap(), found);
        assert!(with_layers(serde_json::json!([]), &[]).is_err());
    }
}
