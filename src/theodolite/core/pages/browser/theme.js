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
