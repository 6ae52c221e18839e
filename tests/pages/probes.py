"""Questions put to an open page, in its own language."""

# Contrast of every piece of text with what lies behind it, as WCAG defines it.
CONTRAST = """() => {
  const canvas = document.createElement("canvas")
    .getContext("2d", {willReadFrequently: true});
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = (c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r / 255)
    + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = rgb(getComputedStyle(e).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const e of document.querySelectorAll("body *:not(script):not(style)")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    const drawn = e.matches("svg.icon");
    if (!(own || drawn) || e.closest("svg.drawing") || !e.checkVisibility()) continue;
    const front = light(rgb(getComputedStyle(e).color));
    const back = light(behind(e));
    const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    found.push([ratio, `${e.tagName} ${e.textContent.slice(0, 30)}`]);
  }
  return found;
}"""

# References of drawn elements that lead nowhere.
LOST = """svg => [...svg.querySelectorAll("use")].filter((use) =>
  !document.getElementById(use.getAttribute("href").slice(1))).length"""

IN_VIEW = """id => {
  const {top} = document.getElementById(id).getBoundingClientRect();
  return top >= 0 && top < innerHeight && location.hash === "#" + id;
}"""

# Parts of drawn verdicts that reach out of their frame, shading apart.
OUT_OF_FRAME = """() => [...document.querySelectorAll("svg.gauge")].flatMap((svg) => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text, circle")].filter((e) => {
    const box = e.getBoundingClientRect();
    return box.left < frame.left - 4 || box.right > frame.right + 4
      || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
  }).map((e) => e.textContent || e.outerHTML);
})"""

# Words of charts that reach out of them.
OUT_OF_CHART = """() => [...document.querySelectorAll("svg[data-chart]")]
  .flatMap((svg) => {
    const frame = svg.getBoundingClientRect();
    return [...svg.querySelectorAll("text")].filter((e) => {
      const box = e.getBoundingClientRect();
      return box.left < frame.left - 1 || box.right > frame.right + 1
        || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
    }).map((e) => e.textContent);
  })"""

# Boxes that scroll sideways but that the keyboard cannot reach.
UNREACHABLE = """() => [...document.querySelectorAll("main *")].filter((e) =>
  e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === "auto"
  && e.tabIndex !== 0).map((e) => e.className)"""

CLIPPED = """() => [...document.querySelectorAll("main *")].filter((e) =>
  !e.closest("svg, .unseen, .line") && getComputedStyle(e).overflow !== "visible")
  .map((e) => e.className)"""

STUCK = """() => [...document.querySelectorAll("body *")].filter((e) =>
  ["sticky", "fixed"].includes(getComputedStyle(e).position)
  && e.checkVisibility()).map((e) => e.className)"""

# Inks and papers of a drawing as they are painted, by the words of its style sheet.
PAINTED = """() => [...document.querySelectorAll("svg.drawing *")]
  .filter((e) => e.checkVisibility())
  .flatMap((e) => { const s = getComputedStyle(e); return [s.fill, s.stroke]; })"""

# The height of every study, as it stands before anything is unfolded.
HEIGHTS = """() => [...document.querySelectorAll(".study")]
  .map((e) => e.getBoundingClientRect().height)"""

# Things to operate or look at that have no name.
UNNAMED = """() => [...document.querySelectorAll(
    "button, input, select, a, summary, svg[role=img], nav, section, article")]
  .filter((e) => !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby")
    || e.title || e.textContent.trim())).map((e) => e.outerHTML.slice(0, 80))"""
