//! The page of `lacuna compare`, opened in a browser.
//!
//! Without Chromium the test is skipped with a loud message; `LACUNA_REQUIRE=chromium` turns the skip into a
//! failure.
use crate::Bench;
use std::io::Write;
use std::process::Command;

/// Opens a page 390 pixels wide inside another one, and records its natural width and the height of the
/// smallest text in its drawings, in pixels.
const HARNESS: &str = r#"<!DOCTYPE html><html><body style="margin:0">
<iframe id="inside" src="page.html" width="390" height="800" style="border:0"></iframe><pre id="found"></pre><script>
onload = () => {
  const page = document.getElementById("inside").contentDocument;
  let least = 1000;
  for (const text of page.querySelectorAll("svg text")) {
    const svg = text.ownerSVGElement, zoom = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    least = Math.min(least, zoom * parseFloat(page.defaultView.getComputedStyle(text).fontSize));
  }
  const svgs = page.querySelectorAll("figure svg").length, scripts = page.scripts.length;
  document.getElementById("found").textContent =
    `width=${page.documentElement.scrollWidth} least=${least.toFixed(1)} drawings=${svgs} scripts=${scripts}`;
};
</script></body></html>"#;

/// The results of the harness, and the messages on the browser's console.
struct Seen {
    found: String,
    console: Vec<String>,
}

impl Seen {
    fn number(&self, what: &str) -> f64 {
        let part = self.found.split(' ').find_map(|part| part.strip_prefix(what)?.strip_prefix('='));
        part.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {what} in {:?}", self.found))
    }
}

fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success()))
}

/// Opens `page.html` of a folder.
fn open(browser: &str, bench: &Bench) -> Seen {
    bench.file("harness.html", HARNESS);
    let profile = bench.path("profile");
    let ran = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--allow-file-access-from-files",
        ])
        .args(["--enable-logging=stderr", "--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", bench.path("harness.html").display()))
        .output()
        .unwrap();
    let (dom, log) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    let found = dom.split_once("<pre id=\"found\">").and_then(|d| d.1.split_once("</pre>"));
    let found = found.unwrap_or_else(|| panic!("{dom}\n{log}")).0.to_string();
    let console = log.lines().filter(|line| line.contains(":CONSOLE")).map(String::from).collect();
    Seen { found, console }
}

#[test]
fn a_phone_shows_it_whole_and_nothing_complains() {
    let Some(browser) = chromium() else {
        let required = std::env::var("LACUNA_REQUIRE").unwrap_or_default();
        assert!(
            !required.split(',').any(|name| name == "chromium"),
            "LACUNA_REQUIRE names `chromium`, which is not there"
        );
        // The test harness captures what is printed in the usual way.
        writeln!(std::io::stderr(), "\n*** SKIPPED: the page in a browser: there is no Chromium ***")
            .unwrap();
        return;
    };
    let bench = Bench::new();
    let name = "a-file-with-a-name-that-is-streaming-too-long-for-the-screen-of-a-telephone-and-has-no-place-to-break.mtx";
    bench.matrix(name, 2, 2, &["1 1 2", "1 2 -1", "2 1 -1", "2 2 2"]);
    bench.file(
        "peers.jsonl",
        r#"{"kind":"peer","peer":"another","threads":2,"method":"cg","matrix":"gen:poisson-p1:9","type":"f64","n":81,"fresh_us":9.5,"again_us":8.5}"#,
    );
    let args = format!(
        "compare gen:poisson-p1:9 gen:poisson-p1:15 {name} --backends cuda,cpu --formats csr,dia --rounds 1 \
         --methods cg,bicgstab,spmv --peers peers.jsonl --html page.html"
    );
    let ran = bench.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let page = std::fs::read_to_string(bench.path("page.html")).unwrap();
    assert!(
        page.contains("another, 2 threads") && !page.contains("http"),
        "peers are shown, nothing is fetched"
    );

    let seen = open(browser, &bench);
    assert_eq!(seen.console, Vec::<String>::new());
    assert_eq!((seen.number("width"), seen.number("scripts")), (390.0, 0.0), "{}", seen.found);
    // Three charts of time over size, three of residuals.
    assert!(seen.number("drawings") >= 6.0 && seen.number("least") >= 10.0, "{}", seen.found);

    // Check that the test would notice a faulty page:
    bench.file(
        "page.html",
        "<!DOCTYPE html><div style='width:700px'>wide</div><script>nothing.there()</script>",
    );
    let seen = open(browser, &bench);
    assert!(seen.number("width") >= 700.0 && seen.number("scripts") == 1.0, "{}", seen.found);
    assert!(seen.console.iter().any(|line| line.contains("nothing is not defined")), "{:?}", seen.console);
}
