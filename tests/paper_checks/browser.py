"""A page in a real browser, without a driver: a probe written into a copy of the page says what it sees."""

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--virtual-time-budget=20000",
]

# Before anything else runs: keep every error, of scripts and of the console.
LISTEN = """<script>window.seenErrors = [];
window.addEventListener('error', e => seenErrors.push(String(e.message || e.target.src)), true);
const say = console.error; console.error = (...a) => { seenErrors.push(a.join(' ')); say(...a); };</script>"""

# After all of it: the size of the page, and for each figure its own, and how many marks have an extent.
PROBE = """<script>setTimeout(() => {
const figures = [...document.querySelectorAll('figure')].map(f => {
  const box = f.querySelector('svg.main-svg')?.getBoundingClientRect();
  const marks = [...f.querySelectorAll('.trace path, .trace text, .heatmaplayer image, .points path')].filter(
    m => { const b = m.getBoundingClientRect(); return b.width + b.height > 0; });
  return {caption: f.querySelector('figcaption').textContent, width: box?.width, height: box?.height, marks: marks.length};
});
const math = [...document.querySelectorAll('math')].filter(m => m.getBoundingClientRect().height > 8).length;
const found = {errors: seenErrors, figures, math, scroll: document.documentElement.scrollWidth, inner: innerWidth};
const out = document.createElement('script'); out.type = 'application/json'; out.id = 'probe';
out.textContent = JSON.stringify(found); document.body.append(out);
}, 3000);</script>"""


def look(html: str, width: int = 1280, screenshot: Path | None = None) -> dict:
    """What the browser sees of the page at this width."""
    # A narrow window is a narrow frame in a wide one: the browser refuses windows below 500 pixels.
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(
            html.replace("<head>", "<head>" + LISTEN, 1).replace("</body>", PROBE + "</body>", 1), encoding="utf-8"
        )
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder}/profile", f"--window-size={max(500, width)},1000"]
        frame = Path(folder) / "frame.html"
        frame.write_text(
            f'<body style="margin:0"><iframe src="page.html" style="border:0;width:{width}px;height:16000px"></iframe>'
            "<script>const wait = setInterval(() => {"
            "const found = document.querySelector('iframe').contentDocument?.getElementById('probe'); if (!found) return;"
            "clearInterval(wait); document.body.append(Object.assign(document.createElement('script'), "
            "{type: 'application/json', id: 'seen', textContent: found.textContent})); }, 200)</script>",
            encoding="utf-8",
        )
        if screenshot is not None:
            command += [f"--screenshot={screenshot}", f"--window-size={max(500, width)},16000"]
        command += ["--allow-file-access-from-files", "--dump-dom", frame.as_uri()]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    return json.loads(re.search(r'<script type="application/json" id="seen">(.*?)</script>', shown, re.S)[1])
