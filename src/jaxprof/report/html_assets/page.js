// Draws each chart when it comes into view, and all charts again for another width, another theme or printing.
const page = (() => {
  const KINDS = { ...plots, icicle };
  const charts = JSON.parse(document.getElementById("charts").textContent);

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

  tables.enliven(document);
  figures().forEach((figure) => nearby.observe(figure));
  let waiting = 0;
  window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(resized, 150); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  window.matchMedia("print").addEventListener("change", all);
  window.addEventListener("beforeprint", all);
  return { draw_all: all };
})();
