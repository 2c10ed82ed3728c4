//! Proxies that the environment names, by the scheme of a URL.

use crate::environment::Environment;
use packfs_core::schemes::HTTPS;
use packfs_core::{Error, Result};
use ureq::{Proxy, ProxyProtocol};
use url::{Host, Url};

/// Proxies, and hosts that are reached without them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
}

impl Proxies {
    /// Reads the variables, of which those in lower case come first, as curl has it.
    ///
    /// Errors: `Usage` for one that is no URL of a proxy; the URL, which may hold a password, is
    /// not shown.
    pub(crate) fn new(environment: &Environment) -> Result<Self> {
        let direct = environment.first(&["no_proxy", "NO_PROXY"]).unwrap_or_default();
        let of = |names: &[&str]| -> Result<Option<Proxy>> {
            let Some((name, url)) = names.iter().find_map(|&name| Some((name, environment.get(name)?)))
            else {
                return Ok(None);
            };
            let wrong = || {
                Error::usage(format!("{name} is no URL of an HTTP proxy"))
                    .hint("form: http://[USER:PASSWORD@]HOST[:PORT]")
            };
            let is_http =
                |proxy: &Proxy| matches!(proxy.protocol(), ProxyProtocol::Http | ProxyProtocol::Https);
            let proxy = Proxy::new(&url).ok().filter(is_http).ok_or_else(wrong)?;
            let all = Proxy::builder(proxy.protocol()).host(proxy.host()).port(proxy.port());
            let all = all.resolve_target(proxy.resolve_target());
            let all = proxy.username().into_iter().fold(all, |all, name| all.username(name));
            let all = proxy.password().into_iter().fold(all, |all, password| all.password(password));
            let hosts = direct.split(',').map(str::trim).filter(|host| !host.is_empty());
            hosts.fold(all, |all, host| all.no_proxy(host)).build().map(Some).map_err(|_| wrong())
        };
        Ok(Proxies {
            http: of(&["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])?,
            https: of(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])?,
        })
    }

    /// Returns the proxy for a URL. The services of a machine that have link-local addresses, and
    /// give away credentials, are never asked through one.
    pub(crate) fn of(&self, url: &Url) -> Option<&Proxy> {
        if matches!(url.host(), Some(Host::Ipv4(address)) if address.is_link_local()) {
            return None;
        }
        let proxy = if url.scheme() == HTTPS { &self.https } else { &self.http };
        let uri = url.as_str().parse().ok()?;
        proxy.as_ref().filter(|proxy| !proxy.is_no_proxy(&uri))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy_of(variables: &[(&str, &str)], url: &str) -> Option<String> {
        let proxies = Proxies::new(&Environment::of(variables.iter().copied())).unwrap();
        let proxy = proxies.of(&Url::parse(url).unwrap())?;
        Some(format!("{}:{}", proxy.host(), proxy.port()))
    }

    #[test]
    fn each_scheme_has_its_variable() {
        let variables = [("HTTP_PROXY", "http://a:1"), ("https_proxy", "http://u:p@b:2")];
        assert_eq!(proxy_of(&variables, "http://host/x").as_deref(), Some("a:1"));
        assert_eq!(proxy_of(&variables, "https://host/x").as_deref(), Some("b:2"));
        assert_eq!(proxy_of(&[("HTTP_PROXY", "http://a:1")], "https://host/x"), None);
        assert_eq!(proxy_of(&[("ALL_PROXY", "http://c:3")], "https://host/x").as_deref(), Some("c:3"));
    }

    #[test]
    fn some_hosts_are_reached_directly() {
        let variables = [("ALL_PROXY", "http://a:1"), ("NO_PROXY", "localhost, .example.org")];
        assert_eq!(proxy_of(&variables, "http://localhost:80/x"), None);
        assert_eq!(proxy_of(&variables, "https://images.example.org/x"), None);
        assert!(proxy_of(&variables, "https://example.com/x").is_some());
        assert_eq!(proxy_of(&variables, "http://169.254.169.254/latest/api/token"), None);
    }

    #[test]
    fn a_wrong_url_is_not_passed_over() {
        for url in ["gopher://u:secret@x", "socks5://u:secret@x:1080", "http://"] {
            let error = Proxies::new(&Environment::of([("HTTPS_PROXY", url)])).err().unwrap();
            assert!(
                error.to_string().contains("HTTPS_PROXY") && !error.to_string().contains("secret"),
                "{error}"
            );
        }
    }
}
