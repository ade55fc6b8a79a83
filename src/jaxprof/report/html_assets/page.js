// Draws each chart when it comes into view, and all charts again for another width, another theme or printing. A page
// from a server follows its session: it takes over a new version and keeps what the reader has open.
const page = (() => {
  const KINDS = { ...plots, icicle };
  const ASK_EVERY_MS = 2000;
  let charts = [];

  const draw = (figure) => {
    const chart = charts[Number(figure.dataset.chart)];
    const box = figure.querySelector(".chart");
    if (!chart || box.clientWidth < 40) return;
    box.replaceChildren();
    KINDS[chart.kind](box, chart);
    figure.dataset.width = box.clientWidth;
  };

  const nearby = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting && !entry.target.dataset.width) draw(entry.target);
    }
  }, { rootMargin: "400px" });
  const figures = () => document.querySelectorAll("figure[data-chart]");
  const all = () => figures().forEach(draw);
  const again = () => figures().forEach((figure) => { if (figure.dataset.width) draw(figure); });
  const resized = () => figures().forEach((figure) => {
    const width = figure.querySelector(".chart").clientWidth;
    if (figure.dataset.width && Number(figure.dataset.width) !== width) draw(figure);
  });

  const show = (alive = () => {}) => {
    charts = JSON.parse(document.getElementById("charts").textContent);
    tables.enliven(document);
    alive();
    figures().forEach((figure) => nearby.observe(figure));
  };

  const replace = (text) => {
    const fresh = new DOMParser().parseFromString(text, "text/html"), done = reader.take();
    for (const part of ["header", "nav", "main", "#charts"]) {
      document.querySelector(part).replaceWith(document.importNode(fresh.querySelector(part), true));
    }
    show(() => {
      const focus = reader.give(done);
      for (const figure of figures()) if (figure.querySelector(".chart").dataset.view) draw(figure);
      focus();
    });
  };

  const follow = (address) => {
    let seen = null;
    const read = async (place) => (await fetch(place, { cache: "no-store" })).text();
    const ask = async () => {
      let state = seen, text = "";
      try {
        state = await read(address);
        if (seen !== null && state !== seen) text = await read(location.pathname);
      } catch {
        state = seen; // The server has ended, or the tunnel is down: the page stays as it is, and tries again.
      }
      if (state === null || !state.endsWith(" over")) setTimeout(ask, ASK_EVERY_MS);
      seen = state;
      if (text) replace(text);
    };
    ask();
  };

  show();
  let waiting = 0;
  window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(resized, 150); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  window.matchMedia("print").addEventListener("change", all);
  window.addEventListener("beforeprint", all);
  if (document.body.dataset.follow) follow(document.body.dataset.follow);
  return { draw_all: all };
})();
