// Browsers start no worker for a page that was opened from disk, and the search of the
// site lives in one. There, a hidden frame does what the worker would.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.url = new URL(url, location.href).href;
      this.waiting = [];
      this.onmessage = null;
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.addEventListener("load", () => this.start(frame));
      document.documentElement.append(frame);
      this.frame = frame;
    }

    start(frame) {
      if (this.ready !== undefined) return;
      this.ready = false;
      const inside = frame.contentWindow;
      const add = (source) =>
        new Promise((resolve, reject) => {
          const script = inside.document.createElement("script");
          script.src = source;
          script.onload = resolve;
          script.onerror = reject;
          inside.document.body.append(script);
        });
      inside.importScripts = (...sources) => Promise.all(sources.map(add));
      inside.postMessage = (data) => {
        const heard = new MessageEvent("message", { data });
        this.dispatchEvent(heard);
        if (this.onmessage) this.onmessage(heard);
      };
      this.deliver = (data) =>
        inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      add(this.url).then(() => {
        this.ready = true;
        this.waiting.splice(0).forEach(this.deliver);
      });
    }

    postMessage(data) {
      if (this.ready) this.deliver(data);
      else this.waiting.push(data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
