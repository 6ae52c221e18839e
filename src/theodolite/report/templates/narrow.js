"use strict";
// Search and filters: everything on the page that is about a hidden claim hides too.
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const bar = document.querySelector(".toolbar");
  const input = bar.querySelector("#find");
  const selects = all("[data-filter]", bar);
  const status = bar.querySelector(".shown");

  // Words of an element, its formulas by their source too, in one letter case.
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const LABELS = ".badge, dt, thead, .links, .source, .unseen, .whose, button"; // the page's words, not the studies'
  const texts = (element) => {
    const found = [];
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node.data.trim() && !node.parentElement.closest(LABELS)) found.push(node);
    }
    return found;
  };
  const wordsOf = (element) => plain([
    ...texts(element).map((node) => node.data),
    ...all("math[alttext]", element).map((one) => one.getAttribute("alttext"))].join(" "));
  const lazily = (make) => { let made; return () => made ??= make(); };

  const studies = new Map(all(".study").map((element) => {
    const head = lazily(() => [...all("header, .about", element)].map(wordsOf).join(" "));
    return [element.id, {element, head}];
  }));
  const claims = all("article.claim").map((element) => ({
    element, study: studies.get(element.closest(".study").id),
    data: element.dataset,
    words: lazily(() => wordsOf(element)), seen: lazily(() => wordsOf(element.querySelector("summary"))),
  }));
  const links = all(".mark, .findings a").map((element) => ({
    element: element.closest(".findings li") ?? element, target: element.getAttribute("href").slice(1)}));
  const chapters = all(".chapter").map((element) => ({element, told: lazily(() => wordsOf(element))}));
  const opened = new Set(); // by a search, to be closed after it

  const wanted = () => ({
    words: plain(input.value).split(/\s+/).filter(Boolean),
    choices: selects.filter((one) => one.value).map((one) => [one.dataset.filter, one.value]),
  });
  const hide = (element, hidden) => element.classList.toggle("filtered", hidden);
  const has = (element) => Boolean(element.querySelector("article.claim:not(.filtered)"));

  const open = (details) => {
    if (details.open) return;
    details.open = true;
    opened.add(details);
  };
  const close = () => {
    for (const details of opened) details.open = false;
    opened.clear();
  };

  // What a search finds in a folded part is unfolded, unless it finds that all over.
  const MOST = 25;
  const unfold = (found, words) => {
    for (const {element, seen} of found.slice(0, MOST)) {
      if (words.every((word) => seen().includes(word))) continue;
      open(element.querySelector("details"));
      for (const table of all(".numbers-of", element)) {
        if (words.some((word) => wordsOf(table).includes(word))) open(table);
      }
    }
  };

  const show = () => {
    const {words, choices} = wanted();
    const active = words.length > 0 || choices.length > 0;
    close();
    const shown = claims.filter(({element, data, study, words: own}) => {
      const fits = choices.every(([name, value]) => data[name] === value)
        && words.every((word) => study.head().includes(word) || own().includes(word));
      hide(element, !fits);
      return fits;
    });
    document.documentElement.classList.toggle("narrowed", active);
    for (const {element, head} of studies.values()) {
      const found = words.length > 0 && words.every((word) => head().includes(word));
      hide(element, active && !has(element));
      for (const part of all(".about", element)) hide(part, active && !found);
    }
    for (const more of all(".more")) {
      hide(more, !has(more));
      if (active && has(more)) open(more);
    }
    const gone = new Set(claims.filter(({element}) => element.classList.contains("filtered")).map(({element}) => element.id));
    for (const {element, target} of links) hide(element, gone.has(target));
    // What sums up all claims makes way for some; a search leads to its finds alone.
    for (const part of all(".tally, .balance > .meta")) hide(part, active);
    for (const part of all(".top, .balance")) hide(part, words.length > 0);
    for (const {element, told} of chapters) {
      const finds = words.every((word) => told().includes(word));
      hide(element, active && !(finds && element.querySelector("li:not(.filtered)")));
    }
    for (const part of all(".story")) hide(part, active && !part.querySelector(".chapter:not(.filtered)"));
    for (const part of all(".explorer")) hide(part, active);
    for (const row of all("[data-of]")) hide(row, document.getElementById(row.dataset.of).classList.contains("filtered"));
    for (const link of all(".contents ol a")) {
      const target = document.getElementById(link.getAttribute("href").slice(1));
      hide(link.parentElement, Boolean(target.closest(".filtered")));
    }
    if (words.length) unfold(shown, words);
    mark(words, shown);
    status.textContent = `${shown.length} of ${claims.length}`;
    document.querySelector(".nothing").hidden = shown.length > 0 || !claims.length;
    bar.querySelector(".reset").hidden = !active;
    document.dispatchEvent(new Event("narrowed"));
  };

  // Hits are painted by the browser; nothing of the page changes for it.
  const mark = (words, shown) => {
    if (!globalThis.CSS?.highlights) return;
    CSS.highlights.delete("found");
    const ranges = [];
    for (const {element} of words.length ? shown.slice(0, 4 * MOST) : []) {
      for (const node of texts(element)) {
        const text = node.data.toLowerCase();
        for (const word of words) {
          for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
            const range = new Range();
            range.setStart(node, at);
            range.setEnd(node, at + word.length);
            ranges.push(range);
          }
        }
      }
    }
    if (ranges.length) CSS.highlights.set("found", new Highlight(...ranges));
  };

  const reset = () => {
    input.value = "";
    for (const select of selects) select.value = "";
    show();
  };

  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      show();
      if (input.value) scrollTo({top: 0, behavior: "instant"});
    }, 120);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { input.value = ""; show(); }
    if (event.key === "Enter") document.querySelector("article.claim:not(.filtered)")?.scrollIntoView();
  });
  for (const select of selects) select.addEventListener("change", show);
  for (const button of all(".reset")) button.addEventListener("click", reset);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    input.focus();
  });

  // A link to something that is hidden shows all.
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    const target = link && document.getElementById(link.getAttribute("href").slice(1));
    if (target && target.closest(".filtered")) reset();
  });

  show();
})();
