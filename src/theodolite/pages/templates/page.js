"use strict";
// Light or dark, remembered where the browser lets a page from disk remember.
(() => {
  const root = document.documentElement;
  const remember = (theme) => { try { localStorage.setItem("theodolite-theme", theme); } catch { /* denied */ } };
  const recall = () => { try { return localStorage.getItem("theodolite-theme"); } catch { return null; } };
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  if (["light", "dark"].includes(recall())) root.dataset.theme = recall();
  for (const button of document.querySelectorAll(".theme")) button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    remember(root.dataset.theme);
  });
  for (const bar of document.querySelectorAll(".toolbar")) bar.hidden = false;
  root.classList.add("scripted");
})();
// A button that copies what a box holds, or selects it where copying is denied.
(() => {
  for (const box of document.querySelectorAll("[data-copy]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy the ${box.dataset.copy}`);
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
})();
