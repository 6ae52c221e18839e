"use strict";
(() => {
  const root = document.documentElement;
  const bar = document.querySelector(".toolbar");
  const buttons = [...bar.querySelectorAll("[data-filter]")];
  const claims = [...document.querySelectorAll("article.claim")];
  const marks = [...document.querySelectorAll("a.mark")];
  const status = bar.querySelector(".shown");

  // A page opened from disk may be denied storage: the choice then lasts one visit.
  const remember = (theme) => { try { localStorage.setItem("theodolite-theme", theme); } catch { /* denied */ } };
  const recall = () => { try { return localStorage.getItem("theodolite-theme"); } catch { return null; } };
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  if (["light", "dark"].includes(recall())) root.dataset.theme = recall();
  bar.querySelector(".theme").addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    remember(root.dataset.theme);
  });

  const fits = (element, want) => want === "all" || element.dataset.verdict === want || element.dataset.kind === want;
  const show = (want) => {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.filter === want));
    for (const claim of claims) claim.classList.toggle("filtered", !fits(claim, want));
    for (const mark of marks) mark.classList.toggle("faded", !fits(mark, want));
    for (const section of document.querySelectorAll(".study, .paper")) {
      section.classList.toggle("filtered", want !== "all" && !section.querySelector("article.claim:not(.filtered)"));
    }
    const count = claims.filter((claim) => fits(claim, want)).length;
    status.textContent = `${count} of ${claims.length}`;
  };
  for (const button of buttons) button.addEventListener("click", () => show(button.dataset.filter));

  // A link to something that the filter hides lifts the filter.
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    const target = link && document.getElementById(link.getAttribute("href").slice(1));
    if (target && target.closest(".filtered")) show("all");
  });

  for (const box of document.querySelectorAll(".command")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy the command");
    button.addEventListener("click", async () => {
      const code = box.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1600);
    });
    box.append(button);
  }

  bar.hidden = false;
  show("all");
})();
