"use strict";
// The contents list marks the part that is being read.
(() => {
  const nav = document.querySelector(".contents");
  const button = document.querySelector(".contents-button");
  const entries = [...nav.querySelectorAll("ol a")].map((link) => ({
    link, target: document.getElementById(link.getAttribute("href").slice(1))}));
  let current = null;

  const reading = () => {
    const line = 140;
    let found = null;
    for (const entry of entries) {
      if (!entry.target.getClientRects().length) continue;
      if (!found || entry.target.getBoundingClientRect().top <= line) found = entry;
    }
    return found ?? entries[0];
  };
  const follow = () => {
    const found = reading();
    if (found === current) return;
    current?.link.removeAttribute("aria-current");
    current = found;
    found.link.setAttribute("aria-current", "true");
    const {top, bottom} = found.link.getBoundingClientRect();
    const frame = nav.getBoundingClientRect();
    if (top < frame.top || bottom > frame.bottom) nav.scrollTop += top - frame.top - frame.height / 3;
  };

  let waiting = 0;
  const soon = () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(follow);
  };
  addEventListener("scroll", soon, {passive: true});
  addEventListener("resize", soon);
  document.addEventListener("narrowed", soon);

  // On narrow screens the list lies over the page while it is wanted.
  const toggle = (open) => {
    nav.classList.toggle("open", open);
    button.setAttribute("aria-expanded", String(open));
  };
  button.addEventListener("click", () => toggle(!nav.classList.contains("open")));
  nav.addEventListener("click", (event) => { if (event.target.closest("a")) toggle(false); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && nav.classList.contains("open")) { toggle(false); button.focus(); }
  });
  const filters = document.querySelector(".filters");
  const filtersButton = document.querySelector(".filters-button");
  filtersButton.addEventListener("click", () => {
    const open = filters.classList.toggle("open");
    filtersButton.setAttribute("aria-expanded", String(open));
  });
  follow();
})();
