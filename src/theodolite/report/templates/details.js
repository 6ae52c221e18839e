"use strict";
// Folded parts: opened by a link into them and for print; figures enlarged.
(() => {
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let e = target.parentElement; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    if (target.matches("article.claim")) {
      target.querySelector("details").open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", reveal);
  reveal();

  // Print shows every claim in its line; browsers that cannot do so by style are helped.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:is(.more, .more-figures):not([open])")];
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of folded) one.open = false; });

  for (const card of document.querySelectorAll(".plot > .card")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "enlarge";
    button.setAttribute("aria-pressed", "false");
    button.textContent = "Enlarge";
    button.addEventListener("click", () => {
      const large = card.parentElement.classList.toggle("large");
      button.setAttribute("aria-pressed", String(large));
      button.textContent = large ? "Reduce" : "Enlarge";
      card.tabIndex = large ? 0 : -1;
    });
    card.parentElement.querySelector("figcaption").prepend(button);
  }
})();
