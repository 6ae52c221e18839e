"use strict";
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
